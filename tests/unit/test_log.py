"""Log lines: one JSON object each, on stderr, from the bridge and from its libraries."""

from __future__ import annotations

import base64
import fcntl
import html
import json
import logging
import os
import struct
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import structlog

from bridge import cli, log, masking
from bridge.errors import SettingsError


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Logging as it was before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    libraries = {
        name: logging.getLogger(name).level
        for name in ("librdkafka", "websockets", "httpx", "httpx2", "asyncio", "botocore")
    }
    yield
    root.handlers, root.level = handlers, level
    for name, before in libraries.items():
        logging.getLogger(name).setLevel(before)
    structlog.reset_defaults()


def test_elsewhere_than_on_a_terminal_it_is_json(capsys: pytest.CaptureFixture[str]) -> None:
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
    log.configure(json=False)
    log.get().warning("no longer the owner", reason="paused")
    _, err = capsys.readouterr()
    assert "no longer the owner" in err
    assert "reason=paused" in err
    assert not err.startswith("{")


@pytest.mark.parametrize("library", ["librdkafka", "websockets", "asyncio"])
def test_what_libraries_say_is_shown_on_demand(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()
    logging.getLogger(library).error("a broker is away")
    assert capsys.readouterr().err == ""
    log.configure(verbose=True)
    logging.getLogger(library).error("a broker is %s", "away")
    found = json.loads(capsys.readouterr().err)
    assert (found["event"], found["level"], found["library"]) == ("a broker is away", "error", library)


def test_what_aws_answers_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """It may be credentials."""
    log.configure(verbose=True, json=True)
    logging.getLogger("botocore.parsers").info("Response body")
    assert capsys.readouterr().err == ""


def test_what_a_command_prints_itself_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(quiet=True)
    log.get().warning("told by a finding")
    log.get().error("told by nothing else")
    [line] = capsys.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "told by nothing else"


def test_an_exception_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()
    try:
        raise ValueError("what went wrong")
    except ValueError:
        log.get().exception("unforeseen")
    [line] = capsys.readouterr().err.splitlines()
    assert "what went wrong" in json.loads(line)["exception"]


# Secrets.


def shown(capsys: pytest.CaptureFixture[str], **said: Any) -> dict[str, Any]:
    """What becomes of an event."""
    log.configure()
    log.get().info("said", **said)
    found: dict[str, Any] = json.loads(capsys.readouterr().err)
    return found


SECRET = 's3cret/"ü+ \\x'
FORMS = [
    SECRET,
    quote(SECRET, safe="").lower(),
    json.dumps(SECRET)[1:-1],
    html.escape(SECRET),
    "".join(f"&#{ord(c)};" if not c.isalnum() else c for c in SECRET),
    "".join(f"&#x{ord(c):X};" if not c.isalnum() else c for c in SECRET),
    "".join(f"\\u{ord(c):04X}" if not c.isalnum() else c for c in SECRET),
    SECRET.replace("\\", "\\\\").replace("/", "\\/").replace('"', '\\"'),
    quote(SECRET),
    quote(SECRET, safe=""),
    quote_plus(SECRET),
    repr(SECRET)[1:-1],
    json.dumps(SECRET, ensure_ascii=False)[1:-1],
    base64.b64encode(f"me:{SECRET}".encode()).decode(),
]


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_a_secret_is_shown(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    masking.conceal(SECRET, "a test's", "me")
    masking.conceal("and another", "another test's")

    class Holder:
        def __str__(self) -> str:
            return f"it holds {form}"

    found = shown(
        capsys, a=f"x{form}y", b=[(form,), {form: form}], c=Holder(), d=ValueError(form), e=17, f=None
    )
    assert form not in str(found)
    assert found["a"] == f"x{masking.MASK}y"
    assert found["b"] == [[masking.MASK], {masking.MASK: masking.MASK}]
    assert found["c"] == f"it holds {masking.MASK}"
    assert (found["e"], found["f"]) == (17, None)
    assert masking.concealed(f"error: {form}") == f"error: {masking.MASK}"


def test_nor_in_what_a_library_says_nor_in_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    masking.conceal(SECRET, "a test's")
    log.configure(verbose=True)
    logging.getLogger("websockets").debug("> Authorization: %s %s", "Bearer", SECRET)
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("asyncio").exception("unforeseen")
        log.get().exception("unforeseen", stack_info=True)
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 3
    assert err.count(masking.MASK) >= 3
    assert not any(form in err for form in FORMS)
    first, *_ = err.splitlines()
    assert json.loads(first)["event"] == f"> Authorization: Bearer {masking.MASK}"


@pytest.mark.parametrize(("error", "code"), [(ValueError(SECRET), 1), (SettingsError(SECRET), 2)])
def test_nor_in_what_ends_the_process(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends(**_: Any) -> None:
        raise error

    masking.conceal(SECRET, "a test's")
    monkeypatch.setattr(cli, "app", ends)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    err = capsys.readouterr().err
    assert caught.value.code == code
    assert masking.MASK in err
    assert not any(form in err for form in FORMS)


def test_a_short_secret_leaves_words_and_numbers_legible(capsys: pytest.CaptureFixture[str]) -> None:
    for number, short in enumerate(("a", "20", "info")):
        masking.conceal(short, f"short {number}")
    found = shown(capsys, reason="a bank said a: 2026, 20 informants")
    assert found["reason"] == "X bank said X: 2026, X informants".replace("X", masking.MASK)
    assert (found["event"], found["level"]) == ("said", "info")
    assert found["timestamp"].startswith("20")


def test_a_secret_that_is_rotated_for_ever_takes_no_more_memory() -> None:
    for number in range(100):
        masking.conceal(f"rotated {number}", "rotated")
    assert (
        masking.concealed("rotated 0, rotated 98, rotated 99") == f"rotated 0, {masking.MASK}, {masking.MASK}"
    )


def test_nothing_is_no_secret() -> None:
    masking.conceal("", "empty")
    assert masking.concealed("as it was") == "as it was"


def test_what_is_no_utf_8_is_a_secret_and_a_line_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    secret = "hush\udce9hush"
    masking.conceal(secret, "no text", "m\udce9")
    found = shown(capsys, reason=f"caf\udce9 {secret} hush%E9hush")
    assert found["reason"] == f"caf\\udce9 {masking.MASK} {masking.MASK}"


# A reader that does not read.


@contextmanager
def unread() -> Iterator[int]:
    """The end of a pipe that is stderr, from which nobody reads."""
    end, writer = os.pipe()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(writer, "w") as stderr:
        patch.setattr(sys, "stderr", stderr)
        patch.setattr(log, "LAST_SECONDS", 0.05)
        log.never_wait()
        log.configure()
        yield end
        os.close(end)


def await_full(end: int) -> None:
    """Wait until nothing more is written to a pipe."""
    size, before = -1, -2
    while size != before or not size:
        before = size
        time.sleep(0.1)
        size = struct.unpack("i", fcntl.ioctl(end, termios.FIONREAD, bytes(4)))[0]


def read(end: int, until: str) -> list[dict[str, Any]]:
    """The lines to the first of this event."""
    with os.fdopen(os.dup(end)) as lines:
        found = []
        for line in lines:
            found.append(json.loads(line))
            if found[-1]["event"] == until:
                return found
    return []


def test_what_finds_no_room_is_counted_and_told() -> None:
    with unread() as end:
        for number in range(1_500):
            log.get().info("said", number=number, text="x" * 1_000)
            if number == 200:
                await_full(end)  # what is written later would make room for lines after lost ones
        lost = log.dropped()
        log.drain()
        found = read(end, "log lines dropped, because nobody read stderr")
    assert 100 < lost < 1_000
    assert found[-1]["lines"] == lost
    assert [line["number"] for line in found[:-1]] == [*range(1_500 - lost)]


def test_the_last_lines_are_written_before_the_end() -> None:
    with unread() as end:
        log.get().info("stopped")
        log.drain()
        os.set_blocking(end, False)
        assert json.loads(os.read(end, 1_000))["event"] == "stopped"
