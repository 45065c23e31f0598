"""What is asked for, how pings are answered, when silence is too long."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.config import FeedSettings
from bridge.feed.protocol import ping_reply, request
from bridge.masking import concealed

SECRET = "s3cret/&?"


def settings(**changes: Any) -> FeedSettings:
    return FeedSettings(**{"base_url": "https://provider.example", **changes})


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://provider.example", "ws://provider.example/feed/settlement/v4?revision=17"),
        ("https://provider.example/", "wss://provider.example/feed/settlement/v4?revision=17"),
        ("ws://[::1]:8900", "ws://[::1]:8900/feed/settlement/v4?revision=17"),
        ("wss://provider.example/api//", "wss://provider.example/api/feed/settlement/v4?revision=17"),
    ],
)
def test_the_address_is_that_of_the_interface(base: str, url: str) -> None:
    asked = request(settings(base_url=base), 17)
    assert (asked.url, asked.headers) == (url, {})


def test_without_a_revision_it_asks_with_0() -> None:
    assert request(settings(), None).url.endswith("?revision=0")


@pytest.mark.parametrize(
    ("auth", "name", "headers", "query"),
    [
        ("none", None, {}, ""),
        ("bearer", None, {"Authorization": f"Bearer {SECRET}"}, ""),
        ("header", "X-Key", {"X-Key": SECRET}, ""),
        ("query", "api key", {}, "&api%20key=s3cret%2F%26%3F"),
    ],
)
def test_the_credential_goes_where_the_settings_say(
    auth: str, name: str | None, headers: dict[str, str], query: str
) -> None:
    asked = request(settings(auth=auth, auth_name=name, auth_value=SECRET), 17)
    assert asked.headers == headers
    assert asked.url.partition("?")[2] == f"revision=17{query}"


def test_a_request_does_not_show_its_secret() -> None:
    asked = request(settings(auth="query", auth_name="key", auth_value=SECRET), 17)
    assert "s3cret" not in repr(asked)
    assert "s3cret" not in concealed(f"cannot GET {asked.url}, what is {SECRET}?")


@pytest.mark.parametrize(
    ("setting", "reply"),
    [
        ("none", None),
        ("echo", '{"pingId":"a\\"é"}'),
        ('{"pong":"{pingId}"}', '{"pong":"a\\"é"}'),
        ("{pingId} {pingId}", 'a\\"é a\\"é'),
    ],
)
def test_a_ping_is_answered_as_the_settings_say(setting: str, reply: str | None) -> None:
    assert ping_reply(setting, 'a"é', '{"pingId":"a\\"é"}'.encode()) == reply
