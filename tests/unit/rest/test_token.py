"""The bearer token: which texts are valid, and when its end is logged.

test_client_token.py shows which one is sent, tests/unit/config/test_secrets.py which one of a file counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import OctKey
from pydantic import SecretStr
from structlog.testing import capture_logs

from bridge.errors import SettingsError
from bridge.rest.token import Token, expiry, validity_of
from tests.unit.snapshots.provider import AT, api, minted


def lines(token: Token, *moments: float) -> list[dict[str, Any]]:
    with capture_logs() as logged:
        for moment in moments:
            token.read(moment)
    return [dict(line) for line in logged]


@pytest.mark.parametrize("text", ["hush\nhush", "hush hush", "Bearer hush", "hüsh", "hush\x00", "hush\x7f"])
def test_a_text_that_no_header_can_hold_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    for settings, name in (
        (api(token=SecretStr(text)), "BRIDGE_API__TOKEN holds a text"),
        (api(token_file=file), "BRIDGE_API__TOKEN_FILE: cannot read .*: it holds a text"),
    ):
        with pytest.raises(SettingsError, match=name) as caught:
            Token(settings).read(AT)
        assert "sh" not in str(caught.value)


def test_a_token_that_ends_soon_is_logged_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = Token(api(token_file=file))
    file.write_text(minted(AT + 1000))
    assert lines(token, AT, AT + 99) == []
    warning = {"log_level": "warning", "event": "token expires soon", "setting": "BRIDGE_API__TOKEN_FILE"}
    assert lines(token, AT + 100, AT + 400, AT + 999) == [warning | {"left": "15m"}]
    file.write_text(minted(AT + 1090))
    assert lines(token, AT + 1000, AT + 1001) == [warning | {"left": "1m 30s"}]


def test_an_expired_token_is_logged() -> None:
    token = Token(api(token=SecretStr(minted(AT))))
    (line,) = lines(token, AT, AT + 1)
    assert line["event"] == "token has expired by this machine's clock"
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
def test_a_token_without_an_end_is_not_logged(text: str) -> None:
    assert expiry(text) is None
    assert lines(Token(api(token=SecretStr(text))), AT) == []
    assert validity_of(text, AT) == "does not say how long it is valid"
