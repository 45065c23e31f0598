"""A snapshot job with `--every`: repeated runs, with a status page, health and metrics over HTTP."""

from __future__ import annotations

import threading
from typing import Final

from bridge import clock
from bridge.config import Settings
from bridge.errors import ApiError, NotCommitted, NotOwner, ProviderPause
from bridge.kafka.errors import KafkaUnavailable
from bridge.log import get
from bridge.observability.endpoints import make_app, served
from bridge.observability.status_page import status_page
from bridge.registry import RegistryUnavailable
from bridge.snapshots.asking import ProgressCallback
from bridge.snapshots.job import run
from bridge.snapshots.report import Report
from bridge.snapshots.status import JobStatus, collect
from bridge.snapshots.view import JobView
from bridge.snapshots.wanted import Task

_TRANSIENT: Final = (ApiError, ProviderPause, KafkaUnavailable, RegistryUnavailable, NotOwner)
"""Errors that may be gone at the next run without anybody's help."""
RETRY_SECONDS: Final = 300.0
"""When to run again at the latest after Kafka or the registry was away."""
LONGEST_DELAY_SECONDS: Final = 86_400.0
"""How long the provider may keep a job from its next run."""
WAIT_SECONDS: Final = 30.0
"""A machine that slept has waited for less than the time that has passed: look again after this long."""
MAX_LOGGED: Final = 20
"""Log at most this many of the things that were left out."""


def run_every(
    settings: Settings, task: Task, seconds: float, progress: ProgressCallback, stop: threading.Event
) -> None:
    """Run now and then every `seconds`, until `stop` is set.

    A run that takes longer is followed by the next at once. A failed run is logged, counted, and repeated
    when the next is due, or after `RETRY_SECONDS` if the provider is not to blame. Raises what a person has
    to fix, as `job.run`.
    """
    steady = clock.AnchoredClock()  # a step of the wall clock makes no run late
    status = JobStatus(task.job, at=steady().wall)

    def report_progress(what: str, done: int, total: int) -> None:
        status.progress(steady().wall, what)
        progress(what, done, total)

    def report_trouble(reason: str) -> None:
        status.trouble = reason

    page = status_page("snapshots", lambda: JobView(status, steady().wall))
    labels = {"snapshot": task.job}
    app = make_app(labels, status.health, lambda _: collect(status), settings.web, steady, page)
    with served(app, settings.web):
        while not stop.is_set():
            steady.anchor()
            started = steady()
            due = started.monotonic + seconds
            status.begin(started.wall)
            try:
                report = run(settings, task, report_progress, stop, report_trouble, patience=None)
            except NotCommitted:
                return
            except _TRANSIENT as error:
                status.fail(str(error))
                get().error("snapshot failed, what is published stays", job=task.job, reason=str(error))
                if isinstance(error, ProviderPause):
                    due = max(due, steady().monotonic + min(error.seconds, LONGEST_DELAY_SECONDS))
                elif isinstance(error, KafkaUnavailable | RegistryUnavailable):
                    due = min(due, steady().monotonic + RETRY_SECONDS)
            else:
                status.publish(report)
                _log(report)
            status.rest(steady().wall + max(0.0, due - steady().monotonic))
            while (left := due - steady().monotonic) > 0 and not stop.is_set():
                stop.wait(min(left, WAIT_SECONDS))


def _log(report: Report) -> None:
    snapshot, log = report.snapshot, get()
    log.info(
        "snapshot published",
        job=snapshot.job,
        snapshot=snapshot.id,
        full=report.full,
        written=report.written,
        removed=report.removed,
        requests=report.requests,
        seconds=round(report.seconds, 1),
    )
    for left in snapshot.left_out[:MAX_LOGGED]:
        log.error("left out by the provider", **left._asdict())
    if count := len(snapshot.left_out):
        log.error("snapshot is partial, the next run asks again", leftOut=count, owed=snapshot.owed)
    for note in report.notes:
        log.info("snapshot note", note=note)
