"""The oldest Kafka with which the bridge works, as docs/kafka.md says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.errors import DevError
from bridge_sandbox.cluster import downloads
from bridge_sandbox.cluster.files import silent
from tests.brokers import broker_with, kafka
from tests.harness import Place, assert_exact
from tests.integration.snapshots import Jobs, simulated
from tests.repo.source import ROOT
from tests.tools import lacking

OLDEST = "3.3.2"

pytestmark = pytest.mark.long


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place on that Kafka."""
    try:
        downloads.class_path(silent, *kafka(OLDEST))
    except DevError as error:
        lacking(f"Kafka {OLDEST}: {error}")
    with broker_with(tmp_path, version=OLDEST) as running:
        place = Place(running, "oldest", tmp_path)
        yield place
        for bridge in place.bridges:
            bridge.kill()


async def test_the_oldest_kafka_serves_plan_doctor_run_jobs_and_replay(place: Place) -> None:
    assert f"Kafka {OLDEST.rpartition('.')[0]}" in (ROOT / "docs" / "kafka.md").read_text("utf-8")
    async with simulated(bets=200) as provider:
        jobs = Jobs(place, provider)
        for verb in ("apply", "plan"):
            assert (await place.ran("topics", verb)).returncode == 0
        bridge = place.bridge(FEED__BASE_URL=provider.url)
        tally = await place.settled(provider, bridge)
        assert_exact(tally)
        for job in ("translations", "currencies"):
            await jobs.published(job)
            assert place.read(job)
        doctor = await jobs.command("doctor", "--json", FEED__BASE_URL=provider.url)
        assert doctor.returncode == 0, doctor.stdout
        assert {one["check"]: one["outcome"] for one in json.loads(doctor.stdout)}["aborted"] == "ok"
        replayed = await place.ran("replay")
        assert len(replayed.stdout.splitlines()) == tally.sent
        assert await bridge.end() == 0
