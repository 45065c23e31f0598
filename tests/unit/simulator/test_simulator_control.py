"""The control endpoint without a socket: a request goes in, status, headers and body come out."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import orjson
import pytest

from bridge.simulator.control import Control
from bridge.simulator.faults import FAULTS, Garbage
from bridge.simulator.provider import Provider
from bridge.simulator.stream import Stream
from bridge.simulator.world import World
from tests.unit.simulator.conftest import ORIGIN
from tests.unit.simulator.feed import NOW, let_in, provider

Answer = tuple[int, dict[str, str], bytes]
Ask = Callable[..., Answer]


@pytest.fixture
def feed(world: World) -> Provider:
    return provider(Stream(world, origin=ORIGIN, rate=10))


@pytest.fixture
def ask(feed: Provider) -> Ask:
    """Send a request at NOW, through a check of the WSGI protocol."""

    def inflict(fault: Any) -> float:
        feed.inflict(fault, NOW)
        return NOW

    app = validator(Control(feed, now=lambda: NOW, inflict=inflict, facts={"seed": 7}))

    def request(place: str, method: str = "GET", body: bytes = b"") -> Answer:
        path, _, query = place.partition("?")
        whole: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
        }
        setup_testing_defaults(whole)
        told: list[Any] = []

        def start_response(*given: Any) -> Callable[[bytes], object]:
            told.extend(given)
            return io.BytesIO().write

        pieces: Iterable[bytes] = app(whole, start_response)
        content = b"".join(pieces)
        pieces.close()  # type: ignore[attr-defined]
        return int(told[0].split()[0]), dict(told[1]), content

    return request


def lines(answer: Answer) -> list[dict[str, Any]]:
    assert (answer[0], answer[1]["Content-Type"]) == (200, "application/x-ndjson")
    return [orjson.loads(line) for line in answer[2].splitlines()]


def page(answer: Answer) -> Any:
    assert (answer[0], answer[1]["Content-Type"]) == (200, "application/json")
    return orjson.loads(answer[2])


def error(answer: Answer, status: int) -> str:
    assert (answer[0], answer[1]["Content-Type"]) == (status, "application/json")
    reason: str = orjson.loads(answer[2])["error"]
    return reason


def test_the_truth_is_a_line_for_each_message(feed: Provider, ask: Ask) -> None:
    """When, number, bet, version and hash of everything published so far, in order."""
    feed.inflict(Garbage(), NOW - 0.05)
    told = lines(ask("/truth"))
    truth = list(feed.published(NOW))
    assert [(line["at"], line["seq"], line["betId"]) for line in told] == [
        (message.at, message.seq, message.bet_id) for message in truth
    ]
    assert [line["sha256"] for line in told] == [hashlib.sha256(m.body).hexdigest() for m in truth]
    versions = [orjson.loads(m.body)["data"]["settlementVersion"] for m in truth if m.bet_id]
    assert [line["settlementVersion"] for line in told if line["betId"]] == versions
    assert told[-2]["settlementVersion"] is None
    assert max(versions) > 1
    assert "body" not in told[0]


def test_a_part_of_the_truth_with_its_bytes(feed: Provider, ask: Ask) -> None:
    """Both bounds are included; what is no text is given in base64."""
    feed.inflict(Garbage(count=2), NOW - 1)
    told = lines(ask(f"/truth?since={NOW - 1}&until={NOW - 0.9}&bodies=1"))
    bodies = [line["body"].encode() if "body" in line else base64.b64decode(line["base64"]) for line in told]
    assert bodies == [message.body for message in feed.log.read(NOW - 1, NOW - 0.9)]
    assert len(bodies) == 4
    assert "base64" in told[2]


def test_the_future_is_not_told(ask: Ask) -> None:
    """What is not published yet is not in the truth, whatever is asked for."""
    assert lines(ask(f"/truth?since={NOW}&until={NOW + 99}"))[-1]["at"] == NOW


def test_attempts_breaches_and_connections_are_told(feed: Provider, ask: Ask) -> None:
    """Every handshake with its class and answer, every breach, and the connection that is open now."""
    assert page(ask("/connections")) == []
    connection = let_in(feed, NOW, int(NOW) - 5)
    connection.frames(NOW, 7)
    feed.connect(NOW + 1, None)
    attempts = page(ask("/attempts"))
    assert [(a["revision"], a["kind"], a["status"]) for a in attempts] == [
        (int(NOW) - 5, "small", 101),
        (None, "initial", 409),
    ]
    assert [(b["rule"], b["at"]) for b in page(ask("/breaches"))] == [("active", NOW + 1)]
    assert page(ask("/connections")) == [{**attempts[0], "replaying": True, "sent": 7}]


def test_the_state_is_told(feed: Provider, ask: Ask) -> None:
    """What is published, what the clock shows, what is remembered, and which faults go on until when."""
    feed.inflict(Garbage(count=3), NOW)
    for name, body in (("clock-jump", b'{"by":60}'), ("stall", b'{"seconds":9}'), ("pause", b"")):
        assert page(ask(f"/faults/{name}", "POST", body))["at"] == NOW
    state = page(ask("/state"))
    assert state["published"] == len(list(feed.published(NOW))) == 1004
    assert (state["now"], state["clock"], state["seed"], state["ended"]) == (NOW, NOW, 7, None)
    assert state["faults"] == {"stall": NOW + 9, "pause": None}
    assert (state["origin"], state["remembers_from"]) == (ORIGIN, NOW - 259_200)
    feed.log.end = NOW - 50
    state = page(ask("/state"))
    assert (state["ended"], state["published"]) == (NOW - 50, 504)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_inflicted(feed: Provider, ask: Ask, name: str) -> None:
    """Each by its name; the answer repeats what was understood and when it happened."""
    told = page(ask(f"/faults/{name}", "POST", b'{"by":1}' if name == "clock-jump" else b""))
    assert (told["at"], told["fault"]) == (NOW, name)
    assert set(told) == {"at", "fault", *FAULTS[name].model_fields}


def test_what_is_wrong_with_a_fault_is_told(feed: Provider, ask: Ask) -> None:
    """Field and reason, and nothing happens."""
    for body, reason in (
        (b'{"seconds":-1}', "seconds: Input should be greater than or equal to 0"),
        (b'{"second":1}', "second: Extra inputs are not permitted"),
        (b'{"close_code":1006}', "close_code: must be a close code that may be sent: 1000-1003"),
        (b"[]", "the body: Input should be a valid dictionary"),
        (b"{", "the body is not JSON"),
    ):
        assert error(ask("/faults/refuse", "POST", body), 400).startswith(reason)
    assert feed.lasting(NOW) == {}


def test_a_wrong_window_is_told(ask: Ask) -> None:
    """A parameter that is no time, or is unknown, is named."""
    assert error(ask("/truth?since=yesterday"), 400).startswith("since: ")
    assert error(ask("/truth?from=1"), 400).startswith("from: ")


def test_an_unknown_place_is_told_with_those_there_are(ask: Ask) -> None:
    """As is an unknown fault."""
    assert error(ask("/nowhere"), 404).startswith("there is no /nowhere here, only /truth, /attempts")
    assert error(ask("/faults/flood", "POST"), 404).startswith("there is no fault 'flood', only drop, stall")


@pytest.mark.parametrize(
    ("place", "method", "allowed"),
    [("/faults/drop", "GET", "POST"), ("/truth", "POST", "GET"), ("/state", "DELETE", "GET")],
)
def test_another_method_is_not_allowed(ask: Ask, place: str, method: str, allowed: str) -> None:
    """The answer names the one there is, in its text and in Allow."""
    answer = ask(place, method)
    assert error(answer, 405) == f"{place} takes {allowed} and nothing else"
    assert answer[1]["Allow"] == allowed
