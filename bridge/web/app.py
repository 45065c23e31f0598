"""Health and metrics over HTTP, as a WSGI application: whatever it shows, it computes when it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson

from bridge import instant
from bridge.config import Settings
from bridge.health import Verdict, healthy, ready
from bridge.instant import Clock
from bridge.metrics import exposition
from bridge.text import utc
from bridge.view import View

TEXT = "text/plain; charset=utf-8"


class _Answer(NamedTuple):
    status: HTTPStatus
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


Page = Callable[[WSGIEnvironment], _Answer]


def make_app(view: Callable[[], View], settings: Settings, clock: Clock = instant.now) -> WSGIApplication:
    """The application. `view` and `clock` are called on the server's threads, once a request.

    `/healthz` and `/readyz` answer 200 or 503 with JSON, `/metrics` in Prometheus' text format or as
    OpenMetrics, `/` lists them.
    """

    def judged(judge: Callable[[View, float, float], Verdict]) -> Page:
        def page(environ: WSGIEnvironment) -> _Answer:
            seen, now = view(), clock().wall
            verdict = judge(seen, now, settings.feed.silence_seconds)
            status = HTTPStatus.OK if verdict.ok else HTTPStatus.SERVICE_UNAVAILABLE
            return _Answer(status, "application/json", orjson.dumps(_report(verdict, seen, now)))

        return page

    def metrics(environ: WSGIEnvironment) -> _Answer:
        body, content_type = exposition(view(), clock().wall, environ.get("HTTP_ACCEPT", ""))
        return _Answer(HTTPStatus.OK, content_type, body)

    def index(environ: WSGIEnvironment) -> _Answer:
        return _Answer(HTTPStatus.OK, TEXT, "".join(f"{path}\n" for path in pages if path != "/").encode())

    pages: dict[str, Page] = {
        "/": index,
        "/healthz": judged(healthy),
        "/readyz": judged(ready),
        "/metrics": metrics,
    }

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = _respond(pages, environ)
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            *answer.headers,
        ]
        start_response(f"{answer.status.value} {answer.status.phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [answer.body]

    return app


def _respond(pages: dict[str, Page], environ: WSGIEnvironment) -> _Answer:
    page = pages.get(environ.get("PATH_INFO") or "/")
    if page is None:
        return _Answer(HTTPStatus.NOT_FOUND, TEXT, f"not here; there is {' '.join(pages)}\n".encode())
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        return _Answer(HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"only GET and HEAD\n", (("Allow", "GET, HEAD"),))
    return page(environ)


def _report(verdict: Verdict, view: View, now: float) -> dict[str, Any]:
    return {
        "ok": verdict.ok,
        "state": view.state and view.state.value,
        "reason": verdict.reason,
        "since": _utc(view.since),
        "until": _utc(view.until),
        "feed": view.feed,
        "owner": view.owner,
        "revision": view.revision,
        "revisionAgeSeconds": _rounded(view.revision_age(now)),
        "lastCommitAgeSeconds": _rounded(None if view.committed_at is None else now - view.committed_at),
        "loopAgeSeconds": _rounded(now - view.at),
        "nextDial": _utc(view.next_dial),
        "gaps": view.gaps,
    }


def _utc(seconds: float | None) -> str | None:
    return None if seconds is None else utc(seconds)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
