"""A snapshot job that goes on: one run after the other, with health and metrics over HTTP meanwhile."""

from __future__ import annotations

import threading
from typing import Final

from bridge import clock
from bridge.avro.registry import RegistryUnavailable
from bridge.config import Settings
from bridge.errors import ApiError, NotOwner
from bridge.kafka.errors import KafkaUnavailable
from bridge.log import get
from bridge.observability.http_server import served
from bridge.snapshots.asking import ProgressCallback
from bridge.snapshots.endpoints import make_app
from bridge.snapshots.job import Task, run
from bridge.snapshots.metrics import JobStatus
from bridge.snapshots.report import Report

_PASSING: Final = (ApiError, KafkaUnavailable, RegistryUnavailable, NotOwner)
"""What may go better the next time, with nothing done by a person."""
MOST_TOLD: Final = 20
"""Of what was left out, one by one."""


def run_every(
    settings: Settings, task: Task, seconds: float, progress: ProgressCallback, stop: threading.Event
) -> None:
    """Run now, and then every so many seconds, until `stop` is set.

    A run that takes longer is followed by the next at once. One that fails is told in the log and in the
    metrics, and tried again when the next is due. Raises what a person has to mend, as `job.run`.
    """
    seen = JobStatus(task.job, at=clock.now().wall)

    def moves(what: str, done: int, total: int) -> None:
        seen.at, seen.doing = clock.now().wall, what
        progress(what, done, total)

    with served(make_app(seen), settings.web.host, settings.web.port):
        while not stop.is_set():
            begun = clock.now()
            due = begun.monotonic + seconds
            seen.at, seen.rests_until = begun.wall, None
            try:
                report = run(settings, task, moves, stop, patience=None)
            except _PASSING as error:
                seen.fail(str(error))
                get().error("a snapshot failed, the last one stands", job=task.job, reason=str(error))
            else:
                if report is None:
                    return
                seen.publish(report)
                _tell(report)
            left = max(0.0, due - clock.now().monotonic)
            seen.rests_until = clock.now().wall + left
            stop.wait(left)


def _tell(report: Report) -> None:
    get().info(
        "a snapshot is published",
        job=report.snapshot.job,
        snapshot=report.snapshot.id,
        full=report.full,
        written=report.written,
        removed=report.removed,
        requests=report.requests,
        seconds=round(report.seconds, 1),
    )
    for left in report.snapshot.left_out[:MOST_TOLD]:
        get().error("the provider did not tell something, it is left out", **left._asdict())
    if report.snapshot.left_out:
        get().error(
            "the snapshot is partial, the next run asks again",
            leftOut=len(report.snapshot.left_out),
            owed=report.snapshot.owed,
        )
    for note in report.notes:
        get().info("of the snapshot", note=note)
