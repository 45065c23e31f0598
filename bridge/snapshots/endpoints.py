"""Health and metrics of a snapshot job that goes on, over HTTP."""

from __future__ import annotations

from http import HTTPStatus
from wsgiref.types import WSGIApplication, WSGIEnvironment

from bridge import clock as instant
from bridge.clock import Clock
from bridge.formatting import utc
from bridge.observability.pages import Answer, application, well_or_not
from bridge.snapshots.metrics import JobStatus, exposition


def make_app(seen: JobStatus, clock: Clock = instant.now) -> WSGIApplication:
    """The application: `/healthz`, `/readyz` and `/metrics`, as the main job has them.

    Healthy is a job that moves, or rests until its next run; ready one whose last run has published.
    """

    def healthz(environ: WSGIEnvironment) -> Answer:
        return _told(seen.stuck(clock().wall))

    def readyz(environ: WSGIEnvironment) -> Answer:
        unread = "" if seen.last else "no snapshot is published yet"
        return _told(seen.stuck(clock().wall) or seen.failure or unread)

    def metrics(environ: WSGIEnvironment) -> Answer:
        body, content_type = exposition(seen, clock().wall, environ.get("HTTP_ACCEPT", ""))
        return Answer(HTTPStatus.OK, content_type, body)

    def _told(trouble: str) -> Answer:
        last = seen.last and seen.last.snapshot
        return well_or_not(
            not trouble,
            {
                "reason": trouble or seen.failure,
                "job": seen.job,
                "doing": seen.doing,
                "snapshot": last and last.id,
                "finishedAt": last and utc(last.finished_at),
                "complete": last and last.complete,
                "nextAt": None if seen.rests_until is None else utc(seen.rests_until),
            },
        )

    return application({"/healthz": healthz, "/readyz": readyz, "/metrics": metrics})
