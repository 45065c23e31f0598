"""Log lines: one JSON object each, on stderr, from the bridge and from its libraries."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from bridge import log


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Logging as it was before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    libraries = {
        name: logging.getLogger(name).level
        for name in ("librdkafka", "websockets", "httpx", "httpx2", "asyncio")
    }
    yield
    root.handlers, root.level = handlers, level
    for name, before in libraries.items():
        logging.getLogger(name).setLevel(before)
    structlog.reset_defaults()


def test_elsewhere_than_on_a_terminal_it_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line on stderr, with level, time and whatever was said; nothing on stdout."""
    log.configure()
    log.get().info("owning the feed", feed="f", revision=17, path=object)
    out, err = capsys.readouterr()
    [line] = err.splitlines()
    found = json.loads(line)
    assert out == ""
    assert found.pop("timestamp").endswith("Z")
    assert found == {
        "event": "owning the feed",
        "level": "info",
        "feed": "f",
        "revision": 17,
        "path": "<class 'object'>",
    }


def test_for_people_it_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    """The same, to be read."""
    log.configure(json=False)
    log.get().warning("no longer the owner", reason="paused")
    _, err = capsys.readouterr()
    assert "no longer the owner" in err
    assert "reason=paused" in err
    assert not err.startswith("{")


@pytest.mark.parametrize("library", ["librdkafka", "websockets", "asyncio"])
def test_what_libraries_say_is_shown_on_demand(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Their errors are mostly a broker or a provider that is away, which the bridge tells itself."""
    log.configure()
    logging.getLogger(library).error("a broker is away")
    assert capsys.readouterr().err == ""
    log.configure(verbose=True)
    logging.getLogger(library).error("a broker is %s", "away")
    found = json.loads(capsys.readouterr().err)
    assert (found["event"], found["level"], found["library"]) == ("a broker is away", "error", library)


def test_an_exception_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """With its traceback as a field."""
    log.configure()
    try:
        raise ValueError("what went wrong")
    except ValueError:
        log.get().exception("unforeseen")
    [line] = capsys.readouterr().err.splitlines()
    assert "what went wrong" in json.loads(line)["exception"]
