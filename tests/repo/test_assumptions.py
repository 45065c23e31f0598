"""The page of assumptions names places and settings that there are."""

from __future__ import annotations

import re

from bridge.config import Settings
from tests.repo.source import ROOT

PAGE = ROOT / "docs" / "assumptions.md"
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| **", "| assumption"))
]


def test_every_row_says_where_and_what_then() -> None:
    assert len(ROWS) > 30
    assert [row for row in ROWS if len(row) != 3 or not all(row)] == []


def test_every_place_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE.read_text("utf-8"))
    assert [link for link in links if not (PAGE.parent / link).exists()] == []
    paths = {path for _, where, _ in ROWS for path in re.findall(r"`([\w./-]+)`", where)}
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert [row for row in ROWS if not re.search(r"`[\w./-]+`|\]\(", row[1])] == []


def test_every_setting_is_there() -> None:
    known = {
        f"{section}__{name}".upper()
        for section, field in Settings.model_fields.items()
        for name in getattr(field.annotation, "model_fields", {})
    }
    named = {name for *_, then in ROWS for name in re.findall(r"`(\w+__\w+)`", then)}
    assert len(named) > 20
    assert named <= known
