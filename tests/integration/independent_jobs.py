"""The snapshot jobs as processes, against the independent provider, and bets that refer to its data."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from tests.harness import Place, until
from tests.integration.independent import LANGUAGES, TOKEN, Datum, Provider, Truth
from tests.integration.snapshots import FAST, Topics, produce_bets, settings_at, without_ids


@dataclass(frozen=True)
class Done:
    """How a process ended, and its report if it printed one."""

    code: int
    report: Datum
    stderr: str

    def left_out(self, *endpoints: str) -> set[str | None]:
        """The ids reported as left out, of these endpoints."""
        return {entry["id"] for entry in self.report["leftOut"] if entry["endpoint"] in endpoints}

    def left_out_everywhere(self) -> set[str | None]:
        """The ids reported as left out, of all endpoints."""
        return {entry["id"] for entry in self.report["leftOut"]}


class Independent:
    """Runs the jobs at a place, one after the other, with one attempt a request unless `api` says more."""

    def __init__(self, place: Place, provider: Provider, **api: Any) -> None:
        self.place, self.provider, self.topics = place, provider, Topics(place)
        self._token = place.directory / "provider.token"
        self._token.write_text(TOKEN)
        self._api = {"requests_per_second": 2000, "attempts": 1, "languages": LANGUAGES, **api}

    async def run(self, *arguments: str, **api: Any) -> Done:
        """`bridge translations`, or the job that comes first in the arguments, with `--json`; to its end."""
        job = () if "currencies" in arguments else ("translations",)
        given = {"base_url": self.provider.url, "token_file": str(self._token), "proxy": "none"}
        settings = {f"KAFKA__{name.upper()}": str(value) for name, value in FAST.items()}
        for name, value in {**given, **self._api, **api}.items():
            settings[f"API__{name.upper()}"] = value if isinstance(value, str) else json.dumps(value)
        done = await asyncio.to_thread(self.place.run, *job, *arguments, "--json", **settings)
        assert "Traceback" not in done.stderr, done.stderr
        assert TOKEN not in done.stdout + done.stderr
        return Done(done.returncode, json.loads(done.stdout or "{}"), done.stderr)

    async def well(self, *arguments: str, **api: Any) -> Done:
        """Run a job that must be complete."""
        done = await self.run(*arguments, **api)
        assert done.code == 0, (done.report.get("leftOut"), done.stderr)
        assert (await self.snapshot(done))["scope"] == "Complete"
        assert done.report["complete"]
        assert (done.report["forbidden"], done.report["leftOut"], done.report["owed"]) == ([], [], 0)
        return done

    async def partial(self, *arguments: str, **api: Any) -> Done:
        """Run a job that must publish everything except what it reports as left out."""
        done = await self.run(*arguments, **api)
        assert done.code == 4, done.stderr
        snapshot = await self.snapshot(done)
        assert (snapshot["scope"], done.report["complete"]) == ("Partial", False)
        assert snapshot["leftOut"] == done.report["leftOut"]
        assert snapshot["owed"] == done.report["owed"] > 0
        return done

    async def fails(self, *arguments: str, **api: Any) -> None:
        """Run a job that must fail by the provider's fault and publish nothing."""
        before = self.topics.all("snapshots")
        done = await self.run(*arguments, **api)
        assert (done.code, done.report) == (10, {}), done.stderr
        assert self.topics.all("snapshots") == before

    async def snapshot(self, done: Done) -> Datum:
        """The Snapshot record that the run published, once visible."""

        def seen() -> list[Datum]:
            return [
                s for s in self.topics.snapshots(done.report["job"]) if s["id"] == done.report["snapshot"]
            ]

        await until(lambda: bool(seen()), "the snapshot to be visible")
        return seen()[0]

    async def published(self, done: Done) -> dict[str, Datum]:
        """Key → record for a reader that stops at the ends of that snapshot."""
        return without_ids(self.topics.at_ends(done.report["job"], await self.snapshot(done)))

    async def place_bets(self, bets: Iterable[Datum], age: float = 0) -> None:
        """Write these bets to the topic, as if received this many seconds ago."""
        bodies = [(time.time() - age, orjson.dumps({"data": bet})) for bet in bets]
        await asyncio.to_thread(produce_bets, settings_at(self.place, {}), bodies)


def bets_on(
    truth: Truth, events: Iterable[int] | None = None, currencies: Sequence[str] = ("EUR", "SEK", "BTC")
) -> list[Datum]:
    """A bet on each of these events, or on all, with items on all of its markets and selections."""
    chosen = truth.events if events is None else events
    return [bet_on(truth, n, f"on {n}", currencies[i % len(currencies)]) for i, n in enumerate(chosen)]


def bet_on(truth: Truth, number: int, id_: str, currency: str = "EUR", most: int | None = None) -> Datum:
    """A bet on an event, on all its selections or the given number."""
    event = truth.events[number]
    pairs = [(m, x) for m, market in event.markets.items() for x in market.selections]
    items = [
        {
            "event": {"id": number, "isLive": False},
            "market": {"id": market, "type": event.markets[market].type},
            "selectionId": selection,
            "competitionId": event.league,
            "countryId": event.region,
            "sportId": event.sport,
            "limitsFactor": 1.0,
            "hasLineDeviation": False,
            "isOutright": False,
            "version": 1,
            "type": 1,
        }
        for market, selection in pairs[:most]
    ]
    return {
        "betId": id_,
        "betSettlement": 1,
        "payoutMultiplier": 1.0,
        "isCancelled": False,
        "selections": items,
        "isRejected": False,
        "settlementTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "payout": 1.0,
        "partialRefund": 0.0,
        "settlementVersion": 1,
        "amount": {"currency": currency, "value": 1, "precision": 2, "placementExchangeRate": 1.0},
    }


def equal_but(found: dict[str, Datum], truth: dict[str, Datum], keys: Collection[str] = ()) -> None:
    """Assert that the topic equals the truth; it may lack some of these keys, but holds nothing wrong."""
    assert {k: v for k, v in found.items() if k not in keys} == {
        k: v for k, v in truth.items() if k not in keys
    }
    for key in found.keys() & set(keys):
        assert found[key]["translations"].items() <= truth[key]["translations"].items(), key
