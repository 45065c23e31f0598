"""The schemas that ship with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.avro.schemas import ROOT, SUFFIX, TOPICS, load, read, subject
from bridge.errors import SchemaError


def test_every_schema_file_has_its_topic() -> None:
    assert {file.name for file in ROOT.iterdir() if file.name.endswith(SUFFIX)} == {
        name + SUFFIX for name in TOPICS
    }


def test_a_schema_is_loaded_by_its_name_and_its_subject_follows_its_topic() -> None:
    assert [(load(name)["namespace"], load(name)["name"], subject("x.y", name)) for name in TOPICS] == [
        ("settlement", "SettledBet", "x.y.bets-value"),
        ("settlement", "FeedCheckpoint", "x.y.checkpoints-value"),
        ("settlement", "FeedGap", "x.y.gaps-value"),
        ("settlement", "Translation", "x.y.translations-value"),
        ("settlement", "Currency", "x.y.currencies-value"),
        ("settlement", "Snapshot", "x.y.snapshots-value"),
    ]


def test_a_file_that_is_no_schema_is_an_error_that_names_it(tmp_path: Path) -> None:
    for text in (None, "{", "[]", b"\xff"):
        if text is not None:
            (tmp_path / "a.avsc").write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(SchemaError, match=r"a\.avsc"):
            read(tmp_path / "a.avsc")
