"""Each alert of the names fires when its cause has happened, and clears when that has ended.

A job runs each hour against the simulated provider; Prometheus' own tool evaluates the rules. At each moment
that is named, all alerts are compared: none fires that is not expected.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.core import GaugeMetricFamily

from bridge.errors import ApiError
from bridge.snapshots.status import JobStatus, collect
from bridge_sandbox.provider.rest.routes import Endpoint
from bridge_sandbox.provider.world.entities import Event
from tests.alerts import Scrapes, run
from tests.unit.snapshots.world import LANGUAGES, NOW, WORLD, Provider, Runs, mention

EVENTS = WORLD.events
INTERVAL = 60
"""As long as Prometheus has by default: seconds are hours here."""
JOB = {"snapshot": "translations"}


class Hourly:
    """A job that runs each hour, and what a scraper gets from it."""

    def __init__(self) -> None:
        self.provider = Provider()
        self.scrapes = Scrapes(NOW, interval=INTERVAL)
        self.runs = Runs()
        self.dies = False
        """Whether the process ends behind a run that has failed, a minute after its start."""
        self._status = JobStatus("translations", at=NOW)
        self._hours = 0

    def __call__(self, hours: int, *events: Event) -> None:
        """Let hours pass. A run is at the beginning of each, and the first one learns of bets on events."""
        self.runs.bets(mention(*events))
        for _ in range(hours):
            self.runs.now = NOW + 3600 * self._hours
            if self.dies:
                self._status = JobStatus("translations", at=self.runs.now)
            try:
                self.runs.run(self.provider)
            except ApiError as error:
                self._status.fail(str(error))
            else:
                self._status.publish(self.runs.report)
            for number in range(3600 // INTERVAL):
                seconds = 3600 * self._hours + INTERVAL * number
                if not self.dies or seconds % 3600 < 60:
                    self.scrapes.take(seconds, JOB, collect(self._status))
                for owner in (1, 0):  # of a feed that is well
                    leader = GaugeMetricFamily("bridge_leader", "", owner)
                    looked = GaugeMetricFamily(
                        "bridge_transactions_looked_timestamp_seconds", "", NOW + seconds
                    )
                    self.scrapes.take(seconds, {"feed": "f", "owner": str(owner)}, [leader, looked])
            self._hours += 1


pytestmark = pytest.mark.long  # promtool takes most of it


@pytest.fixture
def hourly(tmp_path: Path) -> Iterator[Hourly]:
    """A job; at the end, its alerts are judged."""
    run(tmp_path, "--version")  # is there a tool at all?
    job = Hourly()
    yield job
    job.scrapes.judge(tmp_path)


@pytest.mark.parametrize("dies", [False, True])
def test_names_that_grow_old(hourly: Hourly, dies: bool) -> None:
    hourly(1, EVENTS[0])
    hourly.provider.inject(None, status=500, times=None)
    hourly.dies = dies
    hourly(5 + dies)
    hourly.scrapes.expect()
    hourly(2, EVENTS[1])
    hourly.scrapes.expect(SettlementNamesOld=JOB)
    hourly.provider.rest.faults.clear()
    hourly.dies = False
    hourly(1)
    hourly.scrapes.expect()


@pytest.mark.parametrize(
    ("endpoint", "status", "alert"),
    [
        # Never published by this process: the topic may have names of an earlier one, as old as they may be.
        (None, 500, "SettlementNamesOld"),
        # Without a right to a list it is left out, and nothing is owed: its names come with the events, too.
        ("sports", 403, "SettlementNamesOwed"),
    ],
)
def test_what_the_provider_refuses_from_the_first_run_on(
    hourly: Hourly, endpoint: Endpoint | None, status: int, alert: str
) -> None:
    hourly.provider.inject(endpoint, status=status, times=None)
    hourly(6, EVENTS[0])
    hourly.scrapes.expect()
    hourly(1)
    hourly.scrapes.expect(**{alert: JOB})
    hourly.provider.rest.faults.clear()
    hourly(1)
    hourly.scrapes.expect()


def test_names_that_are_missing_and_stay_owed(hourly: Hourly) -> None:
    hourly.provider.inject("all-event", status=500, times=None)
    hourly(1, EVENTS[0])
    hourly.scrapes.expect()
    hourly(2)
    missing = [{"kind": "event", "language": language} for language in LANGUAGES]
    hourly.scrapes.expect(SettlementNamesMissing=missing)
    hourly(4)
    hourly.scrapes.expect(SettlementNamesMissing=missing, SettlementNamesOwed=JOB)
    hourly.provider.rest.faults.clear()
    hourly(1, EVENTS[1])
    hourly.scrapes.expect()
