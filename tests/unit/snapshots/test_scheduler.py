"""Repeated runs of a snapshot job: what ends them, what is logged and served. The runs are scripted here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from structlog.testing import capture_logs

from bridge import clock
from bridge.clock import AnchoredClock, Instant
from bridge.config import Settings, WebSettings
from bridge.errors import ApiError, AuthError, NotCommitted, ProviderPause, SettingsError
from bridge.kafka.errors import KafkaUnavailable
from bridge.snapshots import scheduler
from bridge.snapshots.model import Omission
from bridge.snapshots.report import Report
from bridge.snapshots.wanted import Task
from tests.unit.snapshots.reports import report

SETTINGS = Settings(web=WebSettings(port=0))
TASK = Task.translations(SETTINGS.api)
Step = Callable[[], Report]
Lines = list[Any]


class Player:
    """Replaces the runs of the job by steps. The last one ends it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: Lines = []
        self.trouble: Callable[[str], None]
        """What the run that is under way was given to report trouble."""
        self._left: list[Step] = []
        monkeypatch.setattr(scheduler, "run", self._run)

    def __call__(self, *steps: Step, seconds: float = 0.0, stop: threading.Event | None = None) -> Lines:
        """Play the steps and return the log."""
        self._left = list(steps)
        with capture_logs() as self.lines:
            scheduler.run_every(SETTINGS, TASK, seconds, lambda *_: None, stop or threading.Event())
        assert not self._left
        return self.lines

    def get(self, path: str) -> tuple[int, bytes]:
        """Return what the server answers during a run."""
        (line,) = logged(self.lines, "health and metrics")
        address = urlsplit(line["address"])
        connection = HTTPConnection(str(address.hostname), address.port, timeout=5)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    def _run(
        self,
        settings: Settings,
        task: Task,
        progress: Any,
        stop: threading.Event,
        on_trouble: Callable[[str], None],
        *,
        patience: float | None,
    ) -> Report:
        self.trouble = on_trouble
        assert patience is None, "it waits for its turn as long as it takes"
        progress("events", 1, 2)
        return self._left.pop(0)()


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Player:
    return Player(monkeypatch)


def fails(error: Exception) -> Step:
    """Return a step that fails."""

    def step() -> Report:
        raise error

    return step


ends = fails(NotCommitted("stopped"))


def logged(lines: Lines, event: str) -> Lines:
    """Return the lines of an event."""
    return [line for line in lines if line["event"] == event]


@pytest.mark.parametrize("error", [ApiError("HTTP 500"), KafkaUnavailable("no broker answers")])
def test_a_transient_error_is_logged_and_the_next_run_is_made(play: Player, error: Exception) -> None:
    lines = play(fails(error), report, ends)
    (failure,) = logged(lines, "snapshot failed, what is published stays")
    assert (failure["job"], failure["reason"], failure["log_level"]) == ("translations", str(error), "error")
    (published,) = logged(lines, "snapshot published")
    assert (published["written"], published["removed"], published["requests"]) == (3, 1, 56)


@pytest.mark.parametrize("error", [AuthError("the token"), SettingsError("a setting")])
def test_an_error_that_a_person_has_to_fix_ends_the_job(play: Player, error: Exception) -> None:
    with pytest.raises(type(error)):
        play(fails(error))


def test_a_stop_during_the_rest_ends_the_job_at_once(play: Player) -> None:
    stop = threading.Event()

    def last() -> Report:
        stop.set()
        return report()

    assert logged(play(last, seconds=86_400, stop=stop), "snapshot published")


class Resting(threading.Event):
    """What a job waits for between runs, so many seconds a time by the machine's clock."""

    def __init__(self, play: Player, patch: pytest.MonkeyPatch, seconds: float) -> None:
        super().__init__()
        patch.setattr(clock, "AnchoredClock", lambda: AnchoredClock(lambda: self.now))
        self._seconds = seconds
        self.now = Instant(1_790_000_000.0, 5_000.0)
        self.health: list[int] = []
        self._play = play

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep so long by the steady clock, and as long as `timeout` says by others; set the clock."""
        self.health.append(self._play.get("/healthz")[0])
        self.now = Instant(self.now.wall + 86_400, self.now.monotonic + self._seconds)
        return False


def test_a_job_rests_healthily_whatever_the_wall_clock_says(
    play: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Resting(play, monkeypatch, 7_200)
    play(report, ends, seconds=7 * 3_600, stop=stop)
    assert stop.health == [200] * 4


@pytest.mark.parametrize(
    ("error", "minutes"),
    [
        (KafkaUnavailable("no broker answers"), 5),
        (ApiError("HTTP 500"), 60),
        (ProviderPause("in two hours", 7_200), 120),
    ],
)
def test_how_long_a_job_rests_after_a_failure(
    play: Player, monkeypatch: pytest.MonkeyPatch, error: Exception, minutes: int
) -> None:
    stop = Resting(play, monkeypatch, 60)
    play(fails(error), ends, seconds=3_600, stop=stop)
    assert len(stop.health) == minutes


def test_what_was_left_out_is_logged(play: Player) -> None:
    left = tuple(Omission("/api/x", str(number), "HTTP 500") for number in range(30))
    lines = play(lambda: report(notes=("odd",), left_out=left, owed=30, complete=False), ends)
    *things, whole = [line for line in lines if line["log_level"] == "error"]
    assert [(line["endpoint"], line["id"]) for line in things] == [("/api/x", str(x)) for x in range(20)]
    assert (whole["leftOut"], whole["owed"]) == (30, 30)
    assert [line["note"] for line in logged(lines, "snapshot note")] == ["odd"]


def test_the_page_shows_the_run_that_is_under_way(play: Player) -> None:
    seen = []

    def step() -> Report:
        seen.append(play.get("/"))
        play.trouble("no broker answers")
        seen.append(play.get("/"))
        return ends()

    play(report, step)
    (status, page), (_, troubled) = seen
    shown = [b"A run is under way" in page, b"Step: events" in page, b"1 published, 0 failed" in page]
    assert (status, shown, b"no broker answers" in troubled) == (200, [True] * 3, True)


def test_readiness(play: Player) -> None:
    seen: list[tuple[int, Any]] = []

    def then(step: Step) -> Step:
        def looked() -> Report:
            status, body = play.get("/readyz")
            answer = orjson.loads(body)
            assert (answer["doing"], answer["nextAt"]) == ("events", None)
            seen.append((status, answer["reason"]))
            return step()

        return looked

    play(then(report), then(fails(ApiError("HTTP 500"))), then(report), then(ends))
    assert seen == [(503, "no snapshot is published yet"), (200, ""), (503, "HTTP 500"), (200, "")]
