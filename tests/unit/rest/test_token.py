"""The bearer token: where it is read, what it must be made of, and when its end is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import OctKey
from pydantic import SecretStr
from structlog.testing import capture_logs

from bridge.config import ApiSettings
from bridge.errors import SettingsError
from bridge.rest.token import Token, expiry, validity_of
from tests.unit.snapshots.provider import AT, api, minted


def lines(token: Token, *moments: float) -> list[dict[str, Any]]:
    with capture_logs() as logged:
        for moment in moments:
            token.read(moment)
    return [dict(line) for line in logged]


def test_a_token_comes_from_the_settings() -> None:
    """As it stands there."""
    assert Token(api(token=SecretStr("abc.def"))).read(AT) == "abc.def"


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    """What it holds now counts, without the line's end."""
    file = tmp_path / "token"
    token = Token(api(token_file=file))
    file.write_text("one\n")
    assert token.read(AT) == "one"
    file.write_text("two\n")
    assert token.read(AT) == "two"


def test_a_file_that_is_emptied_before_it_is_written_holds_the_last_token(tmp_path: Path) -> None:
    """For whoever renews it that way, the moment in between does no harm."""
    file = tmp_path / "token"
    token = Token(api(token_file=file))
    for text, read in (("one", "one"), ("", "one"), ("two", "two")):
        file.write_text(text)
        assert token.read(AT) == read


def test_what_no_header_can_hold_is_passed_over_where_there_was_a_token(tmp_path: Path) -> None:
    """Somebody is writing, or has put the wrong file there."""
    file = tmp_path / "token"
    token = Token(api(token_file=file))
    for text, read in (("one", "one"), ("t wo", "one"), ("two", "two"), ("<html>\n</html>", "two")):
        file.write_text(text)
        assert token.read(AT) == read


def test_without_a_token_the_setting_is_named() -> None:
    """Both ways to give one."""
    with pytest.raises(SettingsError, match=r"BRIDGE_API__TOKEN_FILE.*BRIDGE_API__TOKEN\."):
        Token(ApiSettings()).read(AT)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """With the setting that led there."""
    with pytest.raises(SettingsError, match=r"BRIDGE_API__TOKEN_FILE: cannot read .*/nothing"):
        Token(api(token_file=tmp_path / "nothing")).read(AT)


@pytest.mark.parametrize("text", ["hush\nhush", "hush hush", "Bearer hush", "hüsh", "hush\x00", "hush\x7f"])
def test_what_no_header_can_hold_is_refused(text: str, tmp_path: Path) -> None:
    """By the name of its setting, and without a word of what it is."""
    file = tmp_path / "token"
    file.write_text(text)
    for settings, name in (
        (api(token=SecretStr(text)), "BRIDGE_API__TOKEN holds a text"),
        (api(token_file=file), "BRIDGE_API__TOKEN_FILE holds a text"),
    ):
        with pytest.raises(SettingsError, match=name) as caught:
            Token(settings).read(AT)
        assert "sh" not in str(caught.value)


def test_an_empty_file_holds_no_token(tmp_path: Path) -> None:
    """Which is said."""
    file = tmp_path / "token"
    file.write_text("\n")
    with pytest.raises(SettingsError, match="BRIDGE_API__TOKEN_FILE holds no token"):
        Token(api(token_file=file)).read(AT)


def test_a_token_that_ends_soon_is_told_of_once(tmp_path: Path) -> None:
    """From 15 minutes before; the next token is told of again."""
    file = tmp_path / "token"
    token = Token(api(token_file=file))
    file.write_text(minted(AT + 1000))
    assert lines(token, AT, AT + 99) == []
    warning = {"log_level": "warning", "event": "the token expires soon", "setting": "BRIDGE_API__TOKEN_FILE"}
    assert lines(token, AT + 100, AT + 400, AT + 999) == [warning | {"left": "15m"}]
    file.write_text(minted(AT + 1090))
    assert lines(token, AT + 1000, AT + 1001) == [warning | {"left": "1m 30s"}]


def test_a_token_that_has_expired_is_told_of() -> None:
    """By our clock: the provider may see it otherwise, so it is sent all the same."""
    token = Token(api(token=SecretStr(minted(AT))))
    (line,) = lines(token, AT, AT + 1)
    assert line["event"] == "the token has expired, by our clock"
    assert line["at"] == "2026-09-21T14:13:20Z"


def claims(content: bytes) -> str:
    return jws.serialize_compact({"alg": "HS256"}, content, OctKey.import_key("not-our-business"))


@pytest.mark.parametrize(
    "text",
    [
        "opaque",
        "a.b.c",
        "..",
        "a.b.c.d.e",
        claims(b"no JSON"),
        claims(b"[]"),
        claims(b"{}"),
        minted("tomorrow"),
        minted(None),
        minted(True),
    ],
)
def test_a_token_that_names_no_end_is_nothing_to_tell_of(text: str) -> None:
    """It need not be a JWT, nor have an `exp`."""
    assert expiry(text) is None
    assert lines(Token(api(token=SecretStr(text))), AT) == []
    assert validity_of(text, AT) == "does not say how long it is valid"


def test_an_end_may_have_a_fraction() -> None:
    """A number of any kind is a moment."""
    assert expiry(minted(AT + 0.5)) == AT + 0.5


def test_a_token_says_how_long_it_is_valid() -> None:
    """Even when it has taken milliseconds for seconds."""
    assert validity_of(minted(AT), AT) == "expired at 2026-09-21T14:13:20Z"
    assert validity_of(minted(AT), AT - 1) == "says that it is valid until 2026-09-21T14:13:20Z"
    assert "valid until" in validity_of(minted(AT * 1000), AT)
