"""What is answered over HTTP, the application called as a server would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import orjson
import pytest

from bridge.clock import Instant
from bridge.config import FeedSettings, Settings
from bridge.observability.endpoints import make_app
from bridge.observability.view import StatusSnapshot
from bridge.state.checkpoint import State

NOW = 1_790_000_000.25
LIVE = StatusSnapshot(
    at=NOW - 0.25,
    started_at=NOW - 900,
    feed="settlement-v4",
    owner_id="me",
    state=State.LIVE,
    reason="why",
    since=NOW - 600.25,
    owner=True,
    revision=1_789_999_970,
    committed_at=NOW - 1.5,
    skew=2.0,
)
STALLED = replace(LIVE, committed_at=NOW - 3_600, since=NOW - 3_600)
WAITING = replace(LIVE, state=State.WAITING_FOR_KAFKA, until=NOW + 9.75)


class Response(NamedTuple):
    status: str
    headers: dict[str, str]
    body: bytes


def ask(path: str, view: StatusSnapshot = LIVE, method: str = "GET", **environ: str) -> Response:
    """One request, with the rules of WSGI held against both sides."""
    settings = Settings(feed=FeedSettings(idle_timeout_seconds=60))
    app = validator(make_app(lambda: view, settings, lambda: Instant(NOW, 0.0)))
    request: dict[str, Any] = {"SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": "", **environ}
    request["REQUEST_METHOD"] = method
    setup_testing_defaults(request)
    told: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Callable[[bytes], None]:
        told.extend((status, dict(headers)))
        return lambda _: None

    answer = app(request, start_response)
    body = b"".join(answer)
    answer.close()  # type: ignore[attr-defined]  # the validator's, which insists on it
    return Response(told[0], told[1], body)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_live_bridge_is_healthy_and_ready(path: str) -> None:
    """And tells its position, how old it is by the provider's clock, and when it last committed."""
    response = ask(path)
    assert (response.status, response.headers["Content-Type"]) == ("200 OK", "application/json")
    assert orjson.loads(response.body) == {
        "ok": True,
        "state": "Live",
        "reason": "why",
        "since": "2026-09-21T14:03:20Z",
        "until": None,
        "feed": "settlement-v4",
        "owner": True,
        "revision": 1_789_999_970,
        "revisionAgeSeconds": 32.25,
        "lastCommitAgeSeconds": 1.5,
        "loopAgeSeconds": 0.25,
        "nextConnect": None,
        "gaps": 0,
    }


def test_a_bridge_that_has_only_just_started_has_nothing_to_tell() -> None:
    """Null for what is not known yet."""
    response = ask("/healthz", StatusSnapshot(at=NOW, started_at=NOW, feed="f", owner_id="me", since=NOW))
    told = orjson.loads(response.body)
    assert told["ok"] is True
    assert [told[key] for key in ("state", "revision", "revisionAgeSeconds", "lastCommitAgeSeconds")] == [
        None
    ] * 4


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_bridge_that_is_stuck_is_neither(path: str) -> None:
    """503, and why."""
    response = ask(path, STALLED)
    assert response.status == "503 Service Unavailable"
    told = orjson.loads(response.body)
    assert (told["ok"], told["reason"]) == (False, "nothing was committed for 3600 s")


def test_a_bridge_that_waits_for_kafka_is_healthy_but_not_ready() -> None:
    """It says until when it waits."""
    assert ask("/healthz", WAITING).status == "200 OK"
    response = ask("/readyz", WAITING)
    assert response.status == "503 Service Unavailable"
    told = orjson.loads(response.body)
    assert (told["state"], told["reason"], told["until"]) == (
        "WaitingForKafka",
        "why",
        "2026-09-21T14:13:30Z",
    )


def test_metrics_are_text_for_prometheus() -> None:
    """OpenMetrics for a scraper that asks for it."""
    response = ask("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'bridge_state{feed="settlement-v4",state="Live"} 1.0\n' in response.body
    response = ask("/metrics", HTTP_ACCEPT="application/openmetrics-text; version=1.0.0")
    assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert response.body.endswith(b"# EOF\n")


@pytest.mark.parametrize("path", ["/", ""])
def test_the_root_lists_what_there_is(path: str) -> None:
    """One path a line, each of which answers."""
    response = ask(path)
    assert response.status == "200 OK"
    listed = response.body.decode().split()
    assert listed == ["/healthz", "/readyz", "/metrics"]


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/metrics"])
def test_head_is_get_without_a_body(path: str) -> None:
    """With the same status and type, and the length that a body would have."""
    head, get = ask(path, STALLED, method="HEAD"), ask(path, STALLED)
    assert (head.status, head.body) == (get.status, b"")
    assert head.headers["Content-Type"] == get.headers["Content-Type"]
    assert int(get.headers["Content-Length"]) == len(get.body)
    assert int(head.headers["Content-Length"]) > 0


def test_no_answer_is_kept() -> None:
    """A proxy in between must not tell of yesterday."""
    assert ask("/healthz").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/health", "/healthz/", "/metrics/..", "//"])
def test_another_path_is_not_found(path: str) -> None:
    """Where to look is in the answer."""
    response = ask(path)
    assert response.status == "404 Not Found"
    assert b"/healthz" in response.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(method: str) -> None:
    """Other methods are refused."""
    response = ask("/healthz", method=method)
    assert response.status == "405 Method Not Allowed"
    assert response.headers["Allow"] == "GET, HEAD"
