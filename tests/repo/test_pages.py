"""What each page promises its readers, beyond what `test_docs` compares with the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bridge.config import Settings
from tests.repo.source import ROOT
from tests.repo.test_docs import anchors

DOCS = ROOT / "docs"
MOST_UNRELEASED = 30
"""Lines. What breaks and what to type; the rest is in the history of commits."""


def block(page: Path, language: str) -> str:
    """The only block of code in a language."""
    [found] = re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    text: str = found
    return text


def test_what_is_not_released_fits_on_a_screen() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("\n## Unreleased\n")[2]
    lines = [line for line in changes.partition("\n## ")[0].splitlines() if line]
    assert len(lines) <= MOST_UNRELEASED


def test_the_annotated_record_is_that_of_the_example() -> None:
    annotated = re.sub(r" *// .*$", "", block(DOCS / "topics.md", "jsonc"), flags=re.MULTILINE)
    example = (ROOT / "examples" / "settled-bet.record.json").read_text("utf-8")
    assert json.loads(annotated) == json.loads(example)


def test_the_index_has_every_page() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    linked = set(re.findall(r"\]\((\w[\w-]*\.md)\)", index))
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} == linked


def test_every_page_that_the_program_names_has_that_section() -> None:
    """A message such as `"Rights" in docs/kafka.md` leads to a heading."""
    named = [
        (page, section)
        for module in (ROOT / "bridge").rglob("*.py")
        for section, page in re.findall(r'"([A-Z][^"\n]*)" in docs/(\w+\.md)', module.read_text("utf-8"))
    ]
    assert len(named) > 4
    missing = [
        (page, section)
        for page, section in named
        if section.lower().replace(" ", "-") not in anchors(DOCS / page)
    ]
    assert missing == []


def test_the_drop_in_for_a_registry_s_password_sets_what_there_is() -> None:
    given = re.findall(r"^(\w+)=(.*)$", block(DOCS / "install.md", "ini"), re.MULTILINE)
    [(credential, file)] = [value.split(":") for name, value in given if name == "LoadCredential"]
    variables = dict(value.split("=") for name, value in given if name == "Environment")
    names = {name.removeprefix("BRIDGE_REGISTRY__").lower() for name in variables}
    assert names <= type(Settings().registry).model_fields.keys()
    assert f"%d/{credential}" in variables.values()
    assert file in (DOCS / "runbook.md").read_text("utf-8")
