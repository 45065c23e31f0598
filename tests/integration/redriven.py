"""A feed that an older bridge has dead-lettered in part, redrives that are killed, and what comes of it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from bridge.registry import Registry
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import IN_VAIN, PATIENCE, Audit, Bridge, Place, until
from tests.integration.publishing import settings_of

SCALE = 100
"""Time in the limits runs this many times faster at both ends."""
REFUSED = "is not free"


def kills(step: int) -> list[tuple[str, str, int]]:
    """Ten places to be killed at, those in transactions after about `step` others.

    With a complete transaction, half of one, one that is committed and not known to be; having joined the
    group, before and after fencing, with letters read, with bets read; between two transactions, and before a
    commit.
    """
    return [
        ("bridge.kafka.transactions:TransactionalWriter._deliver_all", "after", 1 + step),
        ("bridge.kafka.transactions:TransactionalWriter._produce", "after", 25 * step),
        ("bridge.kafka.blocking:CallTimeout.call", "after", 1 + 2 * step),
        ("bridge.ownership.election:LeaderElection.__init__", "after", 1),
        ("bridge.kafka.blocking:CallTimeout.call", "before", 1),
        ("bridge.kafka.blocking:CallTimeout.call", "after", 1),
        ("bridge.repair.redrive:read_letters", "after", 1),
        ("bridge.stored.restore:PublishedReader.of_bets", "after", 1),
        ("bridge.repair.ownership:OwnedFeed.commit", "after", 2 * step),
        ("bridge.kafka.blocking:CallTimeout.call", "before", 1 + 2 * step),
    ]


def headers(message: Any) -> dict[str, str]:
    """The headers of a record, as text."""
    return {name: value.decode() for name, value in message.headers() or []}


def simulator(**settings: Any) -> Simulator:
    """A provider that settles many bets again."""
    given = {"port": 0, "rate": 100, "resettle": 0.3, "limits_scale": SCALE, **settings}
    return Simulator(SimulatorSettings.model_validate(given))


@dataclass
class Redriven:
    """A place with dead letters of a feed."""

    place: Place
    feed: Simulator

    def settings(self, **more: str) -> dict[str, str]:
        """Of every process here: transactions of few letters."""
        base = {
            "FEED__BASE_URL": self.feed.url,
            "LIMITS__SCALE": str(SCALE),
            "BATCH__MAX_RECORDS": "20",
            # A replay goes back a few seconds only: it does not bring back most letters by itself.
            "FEED__MAX_OUT_OF_ORDERNESS_SECONDS": "3",
            "FEED__SAFETY_MARGIN_SECONDS": "4",
        }
        return base | more

    def letters(self, kind: str = "error") -> list[Any]:
        """The records of a kind in the topic of dead letters."""
        return [message for message in self.place.read("deadletters") if headers(message)["kind"] == kind]

    def outcomes(self) -> Counter[str]:
        """Of all marks."""
        return Counter(headers(mark)["outcome"] for mark in self.letters("redrive"))

    async def fill(self, least: int) -> None:
        """Have an older bridge dead-letter this many bets, then stop it."""
        command = ("tests.unknown_result", "run")
        bridge = self.place._start(command, self.settings(BATCH__MAX_RECORDS="5000"))
        await until(lambda: len(self.letters()) >= least, "dead letters", so_far=bridge.text)
        assert await bridge.end() == 0

    def bridge(self) -> Bridge:
        """A bridge that knows all results."""
        return self.place.bridge("run", **self.settings())

    async def run_a_bridge(self) -> None:
        """Until it is live; then it stops."""
        bridge = self.bridge()
        await bridge.reaches("Live")
        assert await bridge.end() == 0

    async def redrive(self, *command: str) -> Bridge:
        """Redrive to the end, or to the kill; waits until the place of a dead process is free."""
        command = command or ("bridge",)
        while True:
            process = self.place._start((*command, "deadletters", "redrive", "--json"), self.settings())
            if await process.wait() != 1 or REFUSED not in process.text():
                return process
            await asyncio.sleep(0.5)

    async def killed(self, place: str, when: str, number: int) -> None:
        """Redrive, and be killed there."""
        process = await self.redrive("tests.killed", place, when, str(number))
        assert process.process.returncode == -signal.SIGKILL, process.text()

    async def finished(self) -> dict[str, Any]:
        """Redrive the rest. Returns the report."""
        process = await self.redrive()
        assert process.process.returncode == 0, process.text()
        report: dict[str, Any] = json.loads(process.output())
        return report

    def published(self) -> set[tuple[str, int]]:
        """Each bet in the topic with each of its versions."""
        with Registry(settings_of(self.place).registry) as registry:
            codec = registry.codec("settled-bet")
            bets = (codec.decode(message.value() or b"") for message in self.place.read("bets"))
            return {(bet["betId"], bet["settlementVersion"]) for bet in bets}

    async def check(self) -> Counter[str]:
        """Assert that each version of a bet is there once, in order, or superseded; and all marks are there.

        A bridge runs to the end of the feed. Returns the outcomes of the letters.
        """
        bridge = self.bridge()
        await bridge.reaches("Live")
        self.feed.stop_publishing()
        stale = {
            (found["bet"], int(found["version"]))
            for mark in self.letters("redrive")
            if (found := headers(mark))["outcome"] == "stale"
        }
        # A bridge may have published a version and a later one since: then nothing is missing.
        stale -= await asyncio.to_thread(self.published)
        audit, began = Audit(self.place, self.feed), time.monotonic()
        while (tally := await asyncio.to_thread(audit.go_on)).missing != len(stale):
            waited = time.monotonic() - began
            assert waited < PATIENCE, (
                f"{IN_VAIN}{waited:.0f} s: {tally.missing} bets missing, {len(stale)} stale"
            )
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.5)  # what is doubled may still be on its way
        tally = await asyncio.to_thread(audit.go_on)
        assert await bridge.end() == 0
        assert (tally.missing, tally.duplicates, tally.wrong) == (len(stale), 0, [])
        counters = self.place.balanced_counters()
        keys = [letter.key() for letter in self.letters()]
        assert len(keys) == len(set(keys)) == counters["deadLettered"]
        assert sorted(keys) == sorted(mark.key() for mark in self.letters("redrive"))
        assert counters["redriven"] == len(keys)
        assert counters["published"] == len(self.place.read("bets"))
        return self.outcomes()
