"""What runs in production has a known licence without copyleft, and the bill of materials has all of it."""

from __future__ import annotations

import json
import re
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from bridge import __version__
from tools import licences, sbom


@pytest.mark.parametrize("name", licences.locked())
def test_a_package_has_a_known_licence_and_no_copyleft(name: str) -> None:
    installed = metadata.metadata(name)
    assert installed["Version"] == licences.locked()[name]
    assert licences.refused(name, licences.declared(installed)) == set()


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License_Expression": "MIT OR Apache-2.0", "License": "whatever"}, "MIT OR Apache-2.0"),
        ({"License": "BSD-3-Clause"}, "BSD-3-Clause"),
        ({"Classifier": "License :: OSI Approved :: Apache Software License"}, "Apache-2.0"),
        ({"License": "see the file"}, None),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, None),
    ],
)
def test_a_licence_is_found_where_packages_declare_it(fields: dict[str, str], licence: str | None) -> None:
    made: Any = Message()
    for name, value in {"Name": "something", **fields}.items():
        made[name.replace("_", "-")] = value
    if licence:
        assert licences.declared(made) == licence
        return
    with pytest.raises(licences.UnknownLicence, match="something"):
        licences.declared(made)


@pytest.mark.parametrize(
    ("name", "expression", "refused"),
    [
        ("something", "MIT AND (Apache-2.0 OR BSD-2-Clause)", set()),
        ("something", "MIT AND LGPL-2.1-only", {"LGPL-2.1-only"}),
        ("something", "MPL-2.0", {"MPL-2.0"}),
        ("certifi", "MPL-2.0", set()),
        ("certifi", "AGPL-3.0-only", {"AGPL-3.0-only"}),
    ],
)
def test_copyleft_is_refused(name: str, expression: str, refused: set[str]) -> None:
    assert licences.refused(name, expression) == refused


@pytest.mark.long
def test_the_bill_of_materials_has_what_is_locked(tmp_path: Path) -> None:
    sbom.write(tmp_path / "dist" / "sbom.cdx.json")
    text = (tmp_path / "dist" / "sbom.cdx.json").read_text("utf-8")
    assert str(tmp_path) not in text
    bill = json.loads(text)
    assert bill["bomFormat"] == "CycloneDX"
    of_itself = bill["metadata"]["component"]
    assert (of_itself["name"], of_itself["version"]) == ("settlement-bridge", __version__)
    parts = {re.sub(r"[._]", "-", part["name"].lower()): part for part in bill["components"]}
    assert {name: part["version"] for name, part in parts.items()} == licences.locked()
    assert all(part["licenses"] for part in parts.values())
    needed = {name for entry in bill["dependencies"] for name in entry.get("dependsOn", ())}
    assert needed == {part["bom-ref"] for part in parts.values()}
