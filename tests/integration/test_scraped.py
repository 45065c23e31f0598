"""What a scraper gets from running processes answers every query of the dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge_sandbox.provider.faults import Drop, Garbage
from bridge_sandbox.provider.rest.faults import RestFault
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.alerts import QUERIES, run
from tests.harness import Place, until
from tests.integration.snapshots import LANGUAGES, SMALL, Jobs
from tests.integration.test_gaps import four_days_ago
from tests.time_lapse import TimeLapse


@pytest.mark.long
async def test_every_query_of_the_dashboard_is_answered(place: Place, tmp_path: Path) -> None:
    run(tmp_path, "--version")  # is there a tool at all?
    assert len(QUERIES) > 20
    settings = SimulatorSettings(
        port=0,
        rate=50,
        history_seconds=300,
        replay_rate=2500,
        ping_seconds=0.5,
        sizes=SMALL,
        api=RestPolicy(languages=LANGUAGES, rate=1000, burst=50),
    )
    async with Simulator(settings) as provider, TimeLapse(every=0.25) as lapse:
        provider.rest.faults.inject(RestFault(endpoint="selection-templates", status=403, times=None))
        jobs = Jobs(place, provider)
        bridge = place.bridge(
            FEED__BASE_URL=provider.url,
            FEED__START=four_days_ago()[1],
            FEED__ON_GAP="continue",
            LIMITS__PROPER_CONNECTIONS="1",
        )
        lapse.pods["bridge"] = bridge
        await bridge.reaches("Live")
        for job in ("translations", "currencies"):
            lapse.pods[job] = jobs.start(job, "--every", "2s")
        provider.inflict(Garbage(count=3))
        bet = next(m.body for m in provider.truth().until(provider.now()) if m.bet_id is not None)
        for _ in range(8):
            provider.inject(bet.replace(b'{"data":{', b'{"data":{"new":1,'))
            await lapse.pass_by(30)
        other = place.open_transaction("other")
        other.produce(f"{place.prefix}.bets", b"never visible", b"other")
        assert other.flush(20) == 0
        await until(
            lambda: all(len(b.lines()) > 2 for b in lapse.pods.values()), "the jobs", so_far=bridge.text
        )
        shown = "bridge_open_transaction_seconds{"
        await until(lambda: lapse.scrapes.has(shown), "the transaction is seen", so_far=bridge.text)
        other.abort_transaction(20)
        provider.inflict(Drop())
        await bridge.reaches("WaitingForLimit")
        await lapse.pass_by(300)
    # Only while Kafka is slow (`tests/faults/test_pace.py`).
    lapse.scrapes.answer(tmp_path, [query for query in QUERIES if "kafka_bytes_per_second" not in query])
