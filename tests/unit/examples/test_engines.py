"""What each engine's folder has, and what is said of a wrong choice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bridge.errors import BridgeError
from examples import __main__ as runner
from examples.engines import ENGINES, FOLDER, check_of, command_of


def test_the_engines_are_the_folders_that_can_be_run() -> None:
    assert set(ENGINES) >= {"kafka-streams", "quix-join"}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_has_a_page_and_a_check(engine: str) -> None:
    page = (FOLDER / engine / "README.md").read_text("utf-8")
    assert f"make example ENGINE={engine}" in page
    assert callable(check_of(engine).differences)


def test_an_engine_that_is_not_set_up_is_named_with_the_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(BridgeError, match="quix-join is not set up; `make example ENGINE=quix-join` does"):
        command_of("quix-join")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: engine"),
        (["spark"], "invalid choice: 'spark'"),
        (["quix-join", "kafka-streams"], "several engines need --bets"),
        (["quix-join", "--bets", "0"], "--bets is from 1 to 200000"),
    ],
)
def test_a_wrong_choice_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["examples", *arguments])
    with pytest.raises(SystemExit) as ended:
        runner.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
