"""The control endpoint without a socket: a request goes in, status, headers and body come out."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any
from unittest.mock import Mock

import orjson
import pytest

from bridge_sandbox.provider.control import Control
from bridge_sandbox.provider.faults import ClockJump, Garbage
from bridge_sandbox.provider.feed import Provider
from bridge_sandbox.provider.rest.app import Rest
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.rest.tokens import SCOPES, InvalidToken
from bridge_sandbox.provider.stream import Stream, StreamSettings
from bridge_sandbox.provider.world.entities import Sizes, World
from tests.unit.sandbox.provider.conftest import ORIGIN
from tests.unit.sandbox.provider.consumer import NOW, provider
from tests.wsgi import Response
from tests.wsgi import ask as asked

Ask = Callable[..., Response]


@pytest.fixture
def feed(world: World) -> Provider:
    return provider(Stream(world, ORIGIN, StreamSettings(rate=10)))


@pytest.fixture
def rest(feed: Provider) -> Rest:
    small = World(7, ORIGIN, Sizes(sports=2, regions=2, leagues=3, competitors=10, events=5))
    return Rest(small, RestPolicy(languages=("en", "sv")), feed.log.stream.clock)


@pytest.fixture
def on_loop() -> Callable[[Callable[[], Any]], Any]:
    """Overridden by a test of a busy provider."""
    return lambda call: call()


@pytest.fixture
def ask(feed: Provider, rest: Rest, on_loop: Callable[[Callable[[], Any]], Any]) -> Ask:
    """Send a request at NOW."""

    def inflict(fault: Any) -> float:
        feed.inflict(fault, NOW)
        return NOW

    def stop() -> float:
        feed.log.end = min(feed.log.end, NOW - 1)
        return feed.log.end

    def play(command: Any) -> float:
        feed.play(command, NOW)
        return NOW

    app = Control(feed, rest, now=lambda: NOW, inflict=inflict, play=play, stop=stop, on_loop=on_loop)
    return partial(asked, app)


def lines(answer: Response) -> list[dict[str, Any]]:
    assert (answer.status, answer.headers["Content-Type"]) == ("200 OK", "application/x-ndjson")
    return [orjson.loads(line) for line in answer.body.splitlines()]


def page(answer: Response) -> Any:
    assert (answer.status, answer.headers["Content-Type"]) == ("200 OK", "application/json")
    return orjson.loads(answer.body)


def error(answer: Response, status: int) -> str:
    assert (answer.status[:3], answer.headers["Content-Type"]) == (str(status), "application/json")
    reason: str = orjson.loads(answer.body)["error"]
    return reason


def test_the_truth_is_a_line_for_each_message(feed: Provider, ask: Ask) -> None:
    feed.inflict(Garbage(), NOW - 0.05)
    listed = lines(ask(f"/truth?until={NOW + 99}"))
    truth = list(feed.log.read(ORIGIN, NOW))
    assert [(line["at"], line["seq"], line["betId"]) for line in listed] == [
        (message.at, message.seq, message.bet_id) for message in truth
    ]
    assert [line["sha256"] for line in listed] == [hashlib.sha256(m.body).hexdigest() for m in truth]
    versions = [orjson.loads(m.body)["data"]["settlementVersion"] for m in truth if m.bet_id]
    assert [line["settlementVersion"] for line in listed if line["betId"]] == versions
    assert listed[-2]["settlementVersion"] is None
    assert max(versions) > 1
    assert "body" not in listed[0]


def test_a_part_of_the_truth_with_its_bytes(feed: Provider, ask: Ask) -> None:
    feed.inflict(Garbage(count=2), NOW - 1)
    listed = lines(ask(f"/truth?since={NOW - 1}&until={NOW - 0.9}&bodies=1"))
    bodies = [
        line["body"].encode() if "body" in line else base64.b64decode(line["base64"]) for line in listed
    ]
    assert bodies == [message.body for message in feed.log.read(NOW - 1, NOW - 0.9)]
    assert len(bodies) == 4
    assert "base64" in listed[2]
    assert page(ask(f"/truth/count?since={NOW - 1}&until={NOW - 0.9}")) == {"count": 4}


def test_the_state_is_reported(feed: Provider, ask: Ask) -> None:
    feed.inflict(Garbage(count=3), NOW)
    for name, body in (("clock-jump", b'{"by":60}'), ("stall", b'{"seconds":9}'), ("pause", b"")):
        assert page(ask(f"/faults/{name}", "POST", body))["at"] == NOW
    state = page(ask("/state"))
    assert state["published"] == len(list(feed.log.read(ORIGIN, NOW))) == 1004
    assert (state["now"], state["clock"], state["seed"], state["ended"]) == (NOW, NOW, 7, None)
    assert state["faults"] == {"stall": NOW + 9, "pause": None}
    assert (state["origin"], state["remembers_from"]) == (ORIGIN, NOW - 259_200)
    feed.log.end = NOW - 50
    state = page(ask("/state"))
    assert (state["ended"], state["published"]) == (NOW - 50, 504)


def test_the_stream_can_be_ended(feed: Provider, ask: Ask) -> None:
    assert page(ask("/stop", "POST")) == {"at": NOW - 1}
    assert page(ask("/state"))["ended"] == lines(ask("/truth"))[-1]["at"] == NOW - 1


@pytest.mark.parametrize(
    ("method", "place"), [("GET", "/nowhere"), ("POST", "/faults/flood"), ("GET", "/faults/drop")]
)
def test_an_unknown_place_is_reported(ask: Ask, method: str, place: str) -> None:
    assert error(ask(place, method), 404) == f"there is no {method} {place} here; GET / lists what there is"
    listed = page(ask("/"))
    assert listed["GET /truth"] == ["since", "until", "bodies"]
    assert listed["POST /faults/drop"] == ["code", "abort"]


def get(rest: Rest, path: str, authorization: str | None = None) -> int:
    return rest.answer(NOW, f"/api/{path}", authorization or f"Bearer {rest.tokens.mint(NOW)}").status


def test_a_rest_fault_is_injected_and_cleared(rest: Rest, ask: Ask) -> None:
    fault = b'{"endpoint":"sports","status":503,"times":null}'
    listed = page(ask("/api/faults", "POST", fault))
    assert (listed["at"], listed["endpoint"], listed["status"], listed["nth"]) == (NOW, "sports", 503, 1)
    assert [get(rest, f"translations/en/{kind}") for kind in ("regions", "sports", "sports")] == [
        200,
        503,
        503,
    ]
    assert page(ask("/api/clear", "POST")) == {"at": NOW}
    assert get(rest, "translations/en/sports") == 200


@pytest.mark.parametrize(
    ("place", "body", "status", "reason"),
    [
        ("/faults/refuse", b'{"seconds":-1}', 400, "seconds: Input should be greater than or equal to 0"),
        ("/faults/refuse", b'{"second":1}', 400, "second: Extra inputs are not permitted"),
        ("/faults/refuse", b'{"close_code":1006}', 400, "close_code: must be a close code that may be sent"),
        ("/faults/refuse", b"[]", 400, "the body: Input should be an object"),
        ("/faults/refuse", b"{", 400, "the body: Invalid JSON"),
        ("/api/faults", b"{}", 400, "the body: a fault needs at least one of status, body"),
        ("/api/faults", b'{"endpoint":"teams","status":500}', 400, "endpoint: Input should be 'sports'"),
        ("/api/rename", b'{"kind":"team","id":1,"text":"x"}', 400, "kind: Input should be 'sport'"),
        ("/api/rename", b'{"kind":"league","id":1,"text":"x"}', 404, "there is no league 1"),
        (
            "/api/rename",
            b'{"kind":"sport","id":1,"text":"x","language":"de"}',
            404,
            "there is no language de",
        ),
        ("/truth?since=yesterday", b"", 400, "since: "),
        ("/truth?from=1", b"", 400, "from: "),
        ("/attempts?since=1", b"", 400, "since: "),
    ],
    ids=repr,
)
def test_an_invalid_request_is_reported_by_field_and_has_no_effect(
    feed: Provider, rest: Rest, ask: Ask, place: str, body: bytes, status: int, reason: str
) -> None:
    assert error(ask(place, "POST" if body else "GET", body), status).startswith(reason)
    assert (feed.lasting(NOW), rest.catalogue.changes) == ({}, 0)
    assert get(rest, "translations/en/sports") == 200


def test_the_truth_of_the_rest_side_is_a_line_for_each_thing(rest: Rest, ask: Ask) -> None:
    before = {(line["kind"], line["id"]): line for line in lines(ask("/api/truth"))}
    renaming = b'{"kind":"sport","id":1,"text":"Fotball","language":"sv"}'
    assert page(ask("/api/rename", "POST", renaming)) == {"at": NOW, **orjson.loads(renaming)}
    assert page(ask("/api/remove", "POST", b'{"kind":"sport","id":2}'))["at"] == NOW
    after = lines(ask("/api/truth"))
    truth = list(rest.catalogue.truth())
    assert [(line["kind"], line["id"], line["texts"]) for line in after] == [
        (known.kind, known.id, known.texts) for known in truth
    ]
    assert [line["relations"] for line in after] == [orjson.loads(orjson.dumps(k.relations)) for k in truth]
    assert before["sport", 1]["texts"] == {"en": "Football", "sv": "Fotboll"}
    assert after[0]["texts"] == {"en": "Football", "sv": "Fotball"}
    assert (before.keys() - {(line["kind"], line["id"]) for line in after}) == {("sport", 2)}


@pytest.mark.parametrize("on_loop", [Mock(side_effect=TimeoutError)])
@pytest.mark.parametrize(
    ("place", "body"),
    [
        ("/stop", b""),
        ("/faults/garbage", b""),
        ("/api/faults", b'{"status":500}'),
        ("/api/remove", b'{"kind":"sport","id":1}'),
    ],
)
def test_nothing_changes_while_the_provider_is_busy(
    feed: Provider, rest: Rest, ask: Ask, place: str, body: bytes
) -> None:
    assert error(ask(place, "POST", body), 503) == "the provider is too busy; ask again"
    assert (feed.log.end, feed.log.injected, rest.catalogue.changes) == (inf, [], 0)
    assert get(rest, "translations/en/sports") == 200


def test_a_token_is_given(feed: Provider, rest: Rest, ask: Ask) -> None:
    feed.inflict(ClockJump(by=600), NOW - 1)
    token = page(ask("/api/token?seconds=60&scope=currencies"))["token"]
    assert rest.tokens.scopes(NOW + 659, f"Bearer {token}") == {"currencies"}
    with pytest.raises(InvalidToken, match="expired"):
        rest.tokens.scopes(NOW + 661, f"Bearer {token}")
    token = page(ask("/api/token"))["token"]
    assert rest.tokens.scopes(NOW + 80_000, f"Bearer {token}") == SCOPES
    assert error(ask("/api/token?scope=all"), 400).startswith("scope: Input should be 'translations'")


def test_a_clock_jump_expires_tokens(rest: Rest, ask: Ask) -> None:
    header = f"Bearer {rest.tokens.mint(NOW, seconds=60)}"
    for by, status in ((59, 200), (1, 401), (-2, 200), (-59, 401)):
        ask("/faults/clock-jump", "POST", b'{"by":%d}' % by)
        assert rest.answer(NOW + 0.5, "/api/translations/en/sports", header).status == status
