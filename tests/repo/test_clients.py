"""What compares the clients with the truth finds what differs, and the page has a row of each."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from clients.odd import odd_bets
from clients.outcome import MISSING, Outcome, differences, said_error
from clients.programs import CLIENTS, HERE, Client
from clients.table import PAGE, rows
from tests.repo.test_layout import own_files

TRUTH = odd_bets()
SUFFIXES = {Path(path).suffix for path in CLIENTS}


def test_the_page_has_a_row_of_each_client() -> None:
    assert list(rows(PAGE.read_text("utf-8"))) == list(CLIENTS)


def test_every_program_is_run() -> None:
    helpers = {"go/plain/plain.go", "javascript/bigints.js", "rust/src/lib.rs"}
    programs = {
        str(file.relative_to(HERE))
        for file in own_files()
        if file.is_relative_to(HERE)
        and file.parent != HERE
        and file.suffix in (".py", ".java", ".js", ".go", ".rs")
    }
    assert programs == {*CLIENTS} | helpers


@pytest.mark.parametrize(
    ("truth", "found", "paths"),
    [
        ({"a": [1, None]}, {"a": [1, None]}, []),
        ({"a": 2**53 + 1}, {"a": str(2**53 + 1)}, []),
        ({"a": 2**53 + 1}, {"a": float(2**53)}, ["a"]),
        ({"a": -0.0}, {"a": "-0"}, []),
        ({"a": -0.0}, {"a": 0}, ["a"]),
        ({"a": 1.0}, {"a": True}, ["a"]),
        ({"a": False}, {"a": 0}, ["a"]),
        ({"a": []}, {"a": None}, ["a"]),
        ({"a": {"b": 1}}, {"a": {}}, ["a.b"]),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y", "c": 1}]}, ["a[0].b", "a[0].c"]),
    ],
)
def test_what_differs_is_found(truth: Any, found: Any, paths: list[str]) -> None:
    assert [path for path, *_ in differences(truth, found)] == paths


def test_what_is_missing_is_no_value() -> None:
    assert [*differences({"a": None}, {})] == [("a", None, MISSING)]


def test_what_is_wrong_with_a_client_is_said() -> None:
    assert [*Outcome([*TRUTH]).wrong(TRUTH)] == []
    shown = [("aborted-1", None), *TRUTH]
    assert Outcome(shown).aborted() == 1
    assert [*Outcome(shown).wrong(TRUTH)] == []
    assert [*Outcome(TRUTH[:7], "no memory").wrong(TRUTH)] == [f"stops before `{TRUTH[7][0]}`: no memory"]
    assert [*Outcome([row for row in TRUTH if row[1] is not None]).wrong(TRUTH)] == ["no tombstones"]
    assert [*Outcome([("\0", None), *TRUTH]).wrong(TRUTH)] == ["1 records that are none"]
    changed = copy.deepcopy(TRUTH)
    assert changed[0][1] is not None
    changed[0][1]["payout"] = 1.0
    assert [*Outcome(changed).wrong(TRUTH)] == ["`payout` of `usual` is `1.0`, not `23.5`"]


def test_a_program_loses_one_setting_at_a_time() -> None:
    client = Client("javascript/kafkajs.js")
    [setting] = client.settings
    assert setting.code == "typeHook"
    assert setting.reads
    assert "typeHook, //" not in client.without(setting.line)
    assert client.without(None) == client.source


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", "nothing is said"),
        ("one\nlast words", "last words"),
        ("Traceback:\n  File x\nOverflowError: out of | range\n", "OverflowError: out of / range"),
        ("Caused by: com.example.ApiException: 404\n\tat x.ApiException.of(X.java)", "ApiException: 404"),
        ('{"level":"ERROR","stack":"MoreError\\nCaused by: Error: precision\\n at"}', "Error: precision"),
        ("thread 'main' panicked at src/main.rs:7:5:\nno such version\nnote: run", "no such version"),
        ("panic: no member\n\ngoroutine 1", "no member"),
    ],
)
def test_what_went_wrong_is_found_in_a_log(log: str, said: str) -> None:
    assert said_error(log) == said
