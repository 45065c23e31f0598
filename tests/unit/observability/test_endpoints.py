"""What a program answers over HTTP. The application is called as a server calls it."""

from __future__ import annotations

import socket
import threading
import time
from http import HTTPStatus
from urllib.request import urlopen

import orjson
import pytest
from structlog.testing import capture_logs

from bridge.clock import Instant
from bridge.config import WebSettings
from bridge.kafka.open_transactions import OpenTransaction, RecordPlace
from bridge.observability import endpoints
from bridge.observability.endpoints import HttpAnswer, make_app, served
from bridge.observability.health import judge
from bridge.observability.hosts import is_ours
from bridge.observability.http_server import WsgiServer
from bridge.observability.metrics import collect
from bridge.observability.status import StatusSnapshot
from bridge.records.checkpoint import State
from tests import wsgi
from tests.snapshots import replace, snapshot
from tests.wsgi import Response

NOW = 1_790_000_000.25
LIVE = snapshot(
    at=NOW - 0.25,
    started_at=NOW - 900,
    feed="settlement-v4",
    idle_timeout_seconds=60,
    owner_id="me",
    state=State.LIVE,
    reason="why",
    since=NOW - 600.25,
    owner=True,
    revision=1_789_999_970,
    committed_at=NOW - 1.5,
    skew=2.0,
    open_transactions=(OpenTransaction(RecordPlace("t.bets", 3, 7), 1_789_999_950, 40),),
)
STALLED = replace(LIVE, committed_at=NOW - 3_600, since=NOW - 3_600)
STARTED = snapshot(at=NOW, started_at=NOW, feed="f", idle_timeout_seconds=60, owner_id="me", since=NOW)
UNKNOWN = ("state", "revision", "revisionAgeSeconds", "lastCommitAgeSeconds", "openTransactions")
UNAVAILABLE = "503 Service Unavailable"
WAITING = replace(LIVE, state=State.WAITING_FOR_KAFKA, until=NOW + 9.75)


def ask(path: str, status: StatusSnapshot = LIVE, method: str = "GET", **environ: str) -> Response:
    """Make one request to a bridge in that state."""
    app = make_app(
        {"feed": status.process.feed},
        lambda now: judge(status, now),
        lambda now: collect(status, now),
        WebSettings(host="bridge.example", hosts=("Metrics.Example",)),
        lambda: Instant(NOW, 0.0),
    )
    return wsgi.ask(app, path, method, b"", **environ)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_live_bridge_is_healthy_and_ready(path: str) -> None:
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
        "openTransactions": ["t.bets partition 3 from offset 7, since 2026-09-21T14:12:30Z"],
    }


@pytest.mark.parametrize(
    ("path", "status", "code", "report"),
    [
        ("/healthz", STARTED, "200 OK", {"ok": True, **dict.fromkeys(UNKNOWN)}),
        ("/readyz", STARTED, UNAVAILABLE, {"ok": False, "reason": "still starting"}),
        ("/healthz", STALLED, UNAVAILABLE, {"ok": False, "reason": "no commit for 1h"}),
        ("/readyz", STALLED, UNAVAILABLE, {"ok": False, "reason": "no commit for 1h"}),
        ("/healthz", WAITING, "200 OK", {"ok": True, "until": "2026-09-21T14:13:30Z"}),
        ("/readyz", WAITING, UNAVAILABLE, {"ok": False, "state": "WaitingForKafka", "reason": "why"}),
    ],
)
def test_a_probe_answers_by_the_status(
    path: str, status: StatusSnapshot, code: str, report: dict[str, object]
) -> None:
    response = ask(path, status)
    assert response.status == code
    assert report.items() <= orjson.loads(response.body).items()


def test_metrics_are_text_or_openmetrics() -> None:
    response = ask("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'bridge_state{feed="settlement-v4",state="Live"} 1.0\n' in response.body
    response = ask("/metrics", HTTP_ACCEPT="application/openmetrics-text; version=1.0.0")
    assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert response.body.endswith(b"# EOF\n")


@pytest.mark.parametrize("path", ["/", ""])
def test_the_root_lists_the_paths(path: str) -> None:
    response = ask(path)
    assert response.status == "200 OK"
    assert response.body.decode().split() == ["/healthz", "/readyz", "/metrics"]


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/metrics"])
def test_head_is_get_without_a_body(path: str) -> None:
    head, get = ask(path, STALLED, method="HEAD"), ask(path, STALLED)
    assert (head.status, head.body) == (get.status, b"")
    assert head.headers["Content-Type"] == get.headers["Content-Type"]
    assert int(get.headers["Content-Length"]) == len(get.body)
    assert int(head.headers["Content-Length"]) > 0
    assert get.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/health", "/healthz/", "/metrics/..", "//"])
def test_an_unknown_path_is_answered_with_the_known_ones(path: str) -> None:
    response = ask(path)
    assert response.status == "404 Not Found"
    assert b"/healthz" in response.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(method: str) -> None:
    response = ask("/healthz", method=method)
    assert response.status == "405 Method Not Allowed"
    assert response.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("version", ["abc", "1.0.0+x", "\xe9", "1.0.0; escaping=nonsense", "9" * 5000])
def test_metrics_answer_whatever_a_scraper_accepts(version: str) -> None:
    response = ask("/metrics", HTTP_ACCEPT=f"application/openmetrics-text; version={version}")
    assert response.status == "200 OK"
    assert b"bridge_state{" in response.body


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/unknown"])
def test_a_browser_is_told_to_load_and_embed_nothing_else(path: str) -> None:
    headers = ask(path).headers
    policy = headers["Content-Security-Policy"]
    assert {"default-src 'none'", "frame-ancestors 'none'"} < set(policy.split("; "))
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


OURS = ("bridge.example", "metrics.example:9464", "localhost:9464", socket.gethostname().upper())
ADDRESSES = ("127.0.0.1", "10.1.2.3:9464", "[::1]:9464", "[fd00::1]")


@pytest.mark.parametrize("host", [*OURS, *ADDRESSES, "LOCALHOST", "localhost.", "localhost:"])
def test_a_request_for_this_server_is_answered(host: str) -> None:
    assert ask("/healthz", HTTP_HOST=host).status == "200 OK"


def test_a_request_without_a_name_is_answered() -> None:
    assert is_ours(None, ())


OTHERS = (
    "evil.example",
    "evil.example:9464",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "2130706433",
)
MALFORMED = ("", "[::1", "::1", "\xe9", "[localhost]", "127.0.0.1:x", "localhost:80:80", "127.0.0.1,evil")


@pytest.mark.parametrize("host", [*OTHERS, *MALFORMED])
@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/unknown"])
def test_a_request_for_another_name_is_refused(path: str, host: str) -> None:
    response = ask(path, HTTP_HOST=host)
    assert response.status == "421 Misdirected Request"
    assert b"web.hosts" in response.body
    assert b"settlement" not in response.body


def test_an_address_that_is_taken_is_served_once_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "RETRY_SECONDS", 0.001)
    failed, listening = threading.Semaphore(0), threading.Event()

    class Server(WsgiServer):
        def server_bind(self) -> None:
            try:
                super().server_bind()
            except OSError:
                failed.release()
                raise

        def server_activate(self) -> None:
            super().server_activate()
            listening.set()

    monkeypatch.setattr(endpoints, "WsgiServer", Server)
    with capture_logs() as logged, socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        web = WebSettings(port=port)
        with served(make_app({}, lambda now: judge(LIVE, now), lambda now: [], web), web):
            for _ in range(3):
                failed.acquire()
            other.close()
            listening.wait()
            with urlopen(f"http://127.0.0.1:{port}/") as answer:
                assert answer.status == HTTPStatus.OK
    assert [line["log_level"] for line in logged] == ["warning", "info"]
    assert f"cannot listen on 127.0.0.1:{port}" in logged[0]["reason"]
    socket.create_server(("127.0.0.1", port)).close()  # it is free again


def test_nor_does_an_address_that_stays_taken_hold_up_the_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        web = WebSettings(port=other.getsockname()[1])
        with served(make_app({}, lambda now: judge(LIVE, now), lambda now: [], web), web):
            pass
    assert "web" not in {thread.name for thread in threading.enumerate()}


def test_one_answer_at_a_time_is_computed() -> None:
    computing, most = 0, []
    begun = threading.Barrier(8)

    def page(accept: str) -> HttpAnswer:
        nonlocal computing
        computing += 1
        most.append(computing)
        time.sleep(0.002)  # lets another thread run
        computing -= 1
        return HttpAnswer(HTTPStatus.OK, "text/plain", b"")

    app = make_app({}, lambda now: judge(LIVE, now), lambda _: [], WebSettings(), more={"/page": page})

    def ask_for_it() -> None:
        begun.wait(30)
        wsgi.ask(app, "/page", "GET", b"")

    threads = [threading.Thread(target=ask_for_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8
