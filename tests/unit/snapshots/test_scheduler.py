"""A job that goes on: what ends it, and what is seen of it meanwhile. The runs themselves are told here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from structlog.testing import capture_logs

from bridge.config import Settings, WebSettings
from bridge.errors import ApiError, AuthError, SettingsError
from bridge.kafka.errors import KafkaUnavailable
from bridge.snapshots import scheduler
from bridge.snapshots.job import Task
from bridge.snapshots.model import LeftOut
from bridge.snapshots.plan import Scope
from bridge.snapshots.report import Report
from tests.unit.snapshots.reports import report

SETTINGS = Settings(web=WebSettings(port=0))
TASK = Task("translations", Scope.of(SETTINGS.api))
Step = Callable[[], Report | None]
Lines = list[Any]


class Player:
    """Lets the job make runs, one after the other. One that returns None ends it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: Lines = []
        """The log."""
        self._left: list[Step] = []
        monkeypatch.setattr(scheduler, "run", self._run)

    def __call__(self, *steps: Step, seconds: float = 0.0, stop: threading.Event | None = None) -> Lines:
        """The log of these runs."""
        self._left = list(steps)
        with capture_logs() as self.lines:
            scheduler.run_every(SETTINGS, TASK, seconds, lambda *_: None, stop or threading.Event())
        assert not self._left
        return self.lines

    def readiness(self) -> tuple[int, Any]:
        """Status of the page while a run is under way, and the reason that it gives."""
        (line,) = told(self.lines, "health and metrics")
        address = urlsplit(line["address"])
        connection = HTTPConnection(str(address.hostname), address.port, timeout=5)
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        report = orjson.loads(response.read())
        connection.close()
        assert (report["doing"], report["nextAt"]) == ("events", None)
        return response.status, report["reason"]

    def _run(
        self, settings: Settings, task: Task, progress: Any, stop: threading.Event, *, patience: float | None
    ) -> Report | None:
        assert patience is None, "it waits for its turn as long as it takes"
        progress("events", 1, 2)
        return self._left.pop(0)()


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Player:
    """A job whose runs are told."""
    return Player(monkeypatch)


def fails(error: Exception) -> Step:
    """A run that fails."""

    def step() -> Report:
        raise error

    return step


def ends() -> None:
    """A run that was told to end before its turn."""


def told(lines: Lines, event: str) -> Lines:
    """The lines about that."""
    return [line for line in lines if line["event"] == event]


@pytest.mark.parametrize("error", [ApiError("HTTP 500"), KafkaUnavailable("no broker answers")])
def test_what_passes_does_not_end_it(play: Player, error: Exception) -> None:
    """It is told, and the next run is made when it is due."""
    lines = play(fails(error), report, ends)
    (failure,) = told(lines, "a snapshot failed, the last one stands")
    assert (failure["job"], failure["reason"], failure["log_level"]) == ("translations", str(error), "error")
    (published,) = told(lines, "a snapshot is published")
    assert (published["written"], published["removed"], published["requests"]) == (3, 1, 56)


@pytest.mark.parametrize("error", [AuthError("the token"), SettingsError("a setting")])
def test_what_a_person_has_to_mend_ends_it(play: Player, error: Exception) -> None:
    """Another run would only fail again."""
    with pytest.raises(type(error)):
        play(fails(error))


def test_it_ends_in_its_rest(play: Player) -> None:
    """At once, however long that is."""
    stop = threading.Event()

    def last() -> Report:
        stop.set()
        return report()

    assert told(play(last, seconds=86_400, stop=stop), "a snapshot is published")


def test_what_is_left_out_and_what_is_odd_is_in_the_log(play: Player) -> None:
    """An error for each of the first things and one for all, a line for each note."""
    left = tuple(LeftOut("/api/x", str(number), "HTTP 500") for number in range(30))
    lines = play(lambda: report(notes=("odd",), left_out=left, owed=30, complete=False), ends)
    *things, whole = [line for line in lines if line["log_level"] == "error"]
    assert [(line["endpoint"], line["id"]) for line in things] == [("/api/x", str(x)) for x in range(20)]
    assert (whole["leftOut"], whole["owed"]) == (30, 30)
    assert [line["note"] for line in told(lines, "of the snapshot")] == ["odd"]


def test_what_is_seen_of_it(play: Player) -> None:
    """Not ready before the first snapshot, ready after it, not ready after a failure."""
    seen: list[tuple[int, Any]] = []

    def then(step: Step) -> Step:
        def looked() -> Report | None:
            seen.append(play.readiness())
            return step()

        return looked

    play(then(report), then(fails(ApiError("HTTP 500"))), then(report), then(ends))
    assert seen == [(503, "no snapshot is published yet"), (200, ""), (503, "HTTP 500"), (200, "")]
