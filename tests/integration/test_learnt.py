"""The ids in bets are learnt once, on a real Kafka, whatever happens to runs, records and topics."""

from __future__ import annotations

from bridge_sandbox.provider.rest.faults import RestFault
from bridge_sandbox.provider.world.currencies import ACTIVE, UNLISTED
from tests.harness import Place
from tests.integration.snapshots import (
    Jobs,
    Mentioned,
    Topics,
    delete_topic,
    expected,
    simulated,
    without_ids,
)


def forget_records(place: Place, name: str) -> None:
    """Delete all records of a topic, as its retention might if it were not compacted."""
    place.configure(name, cleanup_policy="compact,delete")
    place.delete_records(name)
    place.configure(name, cleanup_policy="compact")


async def test_each_bet_is_read_once(place: Place) -> None:
    async with simulated(bets=300) as provider:
        jobs, topics = Jobs(place, provider, attempts=1), Topics(place)
        bets = await jobs.fill()
        wanted = expected(provider, bets)
        provider.rest.faults.inject(RestFault(endpoint="sports", status=500, times=None))
        await jobs.fails()
        provider.rest.faults.clear()
        assert (await jobs.run()).bets == 0
        assert without_ids(topics.present("translations")) == wanted
        # The translations have read them for both.
        assert [(await jobs.run("currencies")).bets for _ in range(2)] == [0, 0]
        exchanged = {symbol: datum["precision"] for symbol, datum in topics.present("currencies").items()}
        assert exchanged == {**{str(it.symbol): it.precision for it in ACTIVE}, **UNLISTED}

        await delete_topic(place, "snapshot-state")
        assert (await jobs.run()).bets == len(bets)

        forget_records(place, "bets")
        plan = await jobs.plan(full=True)
        events = Mentioned.by(bets).events
        assert plan["endpoints"]["/api/translations/all/event/{eventId}"]["atLeast"] == len(events)
        for name in ("translations", "currencies"):
            report = await jobs.run(name, full=True)
            assert (report.bets, report.written, report.removed) == (0, 0, 0)


async def test_a_recreated_topic_of_bets_is_read_from_its_beginning(place: Place) -> None:
    async with simulated() as provider:
        jobs = Jobs(place, provider)
        bets = await jobs.fill()
        await jobs.run()
        await delete_topic(place, "bets")
        await jobs.fill()
        await jobs.fill()
        assert (await jobs.run()).bets == 2 * len(bets)
