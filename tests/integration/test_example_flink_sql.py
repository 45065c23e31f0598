"""The Flink SQL example on a real broker: sums that a resettlement corrects, and late settlements."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bridge_sandbox.provider.server import Simulator
from examples.engines import ROOT, check_of
from examples.truth import Truth
from tests.harness import Place, assert_exact, until
from tests.integration.engines import PROVIDER, Engine, abort, misnamed, publish_names

ENGINE = "flink-sql"
NEW_NAME = "Another sport"
KEYS = {"profit_and_loss": ("sportId", "leagueId", "currency"), "settlements_by_minute": ("minute",)}
DISORDERLY = PROVIDER.model_copy(
    update={"rate": 4, "history_seconds": 150, "max_out_of_orderness_seconds": 30.0}
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (ROOT / ".venv" / ENGINE / ".set-up").is_file(),
        reason="`make examples` installs PyFlink, 1 GB, and runs this example",
    ),
]


async def test_the_rows_are_what_the_provider_sent(place: Place) -> None:
    with Engine(place, ENGINE) as early:
        assert await early.ended() == 1
        assert f"there is no topic {place.prefix}.bets" in early.text()
    async with Simulator(DISORDERLY) as feed:
        bridge = await place.live(feed, TOPICS__PARTITIONS="1")
        assert_exact(await place.settled(feed, bridge))
        await publish_names(place, feed)
        await asyncio.to_thread(lambda: abort(place, misnamed(place)))
        truth = Truth.of(feed)
        with Engine(place, ENGINE, "--until-end") as engine:
            assert await engine.ended() == 0, engine.text()
        rows = engine.rows()
        assert differences(rows, truth) == []
        assert {row["minute"][:4] for row in rows if "minute" in row} == {
            bet["settlementTime"][:4] for bet in truth.bets
        }
        late = {row["minute"]: row["late"] for row in rows if "minute" in row}
        check: Any = check_of(ENGINE)
        by_minute = check.settlements_by_minute(truth)
        assert late == {minute: row["late"] for (minute,), row in by_minute.items()}
        assert sum(late.values()) > 10

        [alone, *_] = [row for row in rows if row.get("bets") == 1 and row["leagueId"]]
        [one] = [bet for bet in truth.last.values() if not bet["isRejected"] and group_of(bet) == key(alone)]
        changes = {"isRejected": True, "settlementTime": "0001-01-01T00:00:00+02:00"}  # not set
        rejected = {**one, "settlementVersion": one["settlementVersion"] + 1, **changes}
        with Engine(place, ENGINE) as engine:
            await until(lambda: not differences(latest(engine.rows()), truth), "the same", so_far=engine.text)
            before = len(engine.rows())  # a row may also come and go while Flink reads what is there
            feed.inject(json.dumps({"data": rejected}).encode())
            feed.rest.catalogue.rename("sport", 1, NEW_NAME)
            await publish_names(place, feed)
            renamed = Truth.of(feed)
            truth = replace(renamed, bets=[*truth.bets, rejected])
            await until(lambda: not differences(latest(engine.rows()), truth), "both", so_far=engine.text)
            assert await engine.end() == 0, engine.text()
        assert await bridge.end() == 0
    assert [key(row) for row in engine.rows()[before:] if row.get("deleted")] == [key(alone)]
    assert any(row.get("sport") == NEW_NAME for row in engine.rows())


def differences(rows: Sequence[Mapping[str, Any]], truth: Truth) -> list[str]:
    return list(check_of(ENGINE).differences(rows, truth))


def latest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The last row of each key, without those that are no more."""
    return [row for row in {key(row): row for row in rows}.values() if not row.get("deleted")]


def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["table"], *(row[name] for name in KEYS[row["table"]]))


def group_of(bet: Mapping[str, Any]) -> tuple[Any, ...]:
    """The key of the row in which a bet counts."""
    leagues = {(item["sportId"], item["competitionId"]) for item in bet.get("selections") or ()}
    sport, league = leagues.pop() if len(leagues) == 1 else (0, 0)
    return ("profit_and_loss", sport, league, (bet.get("amount") or {}).get("currency") or "")
