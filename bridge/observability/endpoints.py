"""Health and metrics of the main job over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from wsgiref.types import WSGIApplication, WSGIEnvironment

from bridge import clock as instant
from bridge.clock import Clock
from bridge.config import Settings
from bridge.formatting import utc
from bridge.observability.health import HealthStatus, healthy, ready
from bridge.observability.metrics import exposition
from bridge.observability.pages import Answer, Page, application, well_or_not
from bridge.observability.view import StatusSnapshot


def make_app(
    view: Callable[[], StatusSnapshot], settings: Settings, clock: Clock = instant.now
) -> WSGIApplication:
    """The application. `view` and `clock` are called on the server's threads, once a request.

    `/healthz` and `/readyz` answer 200 or 503 with JSON, `/metrics` in Prometheus' text format or as
    OpenMetrics, `/` lists them.
    """

    def judged(judge: Callable[[StatusSnapshot, float, float], HealthStatus]) -> Page:
        def page(environ: WSGIEnvironment) -> Answer:
            seen, now = view(), clock().wall
            verdict = judge(seen, now, settings.feed.idle_timeout_seconds)
            return well_or_not(verdict.ok, _report(verdict, seen, now))

        return page

    def metrics(environ: WSGIEnvironment) -> Answer:
        body, content_type = exposition(view(), clock().wall, environ.get("HTTP_ACCEPT", ""))
        return Answer(HTTPStatus.OK, content_type, body)

    return application({"/healthz": judged(healthy), "/readyz": judged(ready), "/metrics": metrics})


def _report(verdict: HealthStatus, view: StatusSnapshot, now: float) -> dict[str, Any]:
    return {
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
        "nextConnect": _utc(view.next_connect),
        "gaps": view.gaps,
    }


def _utc(seconds: float | None) -> str | None:
    return None if seconds is None else utc(seconds)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
