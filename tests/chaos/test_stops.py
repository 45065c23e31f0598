"""Two bridges on three real brokers: the one that is connected is stopped again and again, or killed.

Some stops outlive the session, so that the other bridge takes over and the stopped one is resumed as a former
owner. Time in the limits runs `SCALE` times faster at both ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

from bridge_sandbox import cluster as dev
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import Handshake, SimulatorSettings
from tests.harness import Bridge, Place, assert_exact, until

STOPS = int(os.environ.get("STOPS", "50"))
SEED = int(os.environ.get("SEED", "1"))
RATE = 100
SCALE = 100
SESSION_SECONDS = 6
SHORTEST, LONGEST, MOST_LIKELY = 2.0, 25.0, 4.0
"""Of a stop, in seconds."""
PAUSE_SECONDS = 4.0
"""Between two stops, at most."""
KILLED = 0.2
"""The share of stops during which one of the two is killed."""
NOTICE_SECONDS = 2.0
"""How long a former owner that was resumed may stay connected: until the group's coordinator answers it."""
HEADER = "X-Bridge"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dev.Cluster]:
    """Three brokers and a registry."""
    with dev.start(tmp_path_factory.mktemp("brokers"), kafka_port=0, registry_port=0, brokers=3) as running:
        yield running


class Pair:
    """Two bridges, who of them is connected, and what became of the connections."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._resumed: dict[str, float] = {}
        """When each was last resumed; absent while it is stopped."""
        self.bridges: dict[str, Bridge] = {}
        self.connected = ""
        """The last that has dialled."""
        self.dials: Counter[str] = Counter()
        """`free` without another connection; `takeover` from a stopped bridge; `overlap` with a former owner
        that was just resumed; `second` to one that may be connected."""
        self.feed: Simulator

    def start(self, name: str) -> None:
        """Start a bridge, in the place of one that was killed."""
        self._resumed[name] = 0.0
        self.bridges[name] = self._place.bridge(
            FEED__BASE_URL=self.feed.url,
            FEED__AUTH="header",
            FEED__AUTH_NAME=HEADER,
            FEED__AUTH_VALUE=name,
            LIMITS__SCALE=str(SCALE),
            KAFKA__SESSION_TIMEOUT_MS=str(1000 * SESSION_SECONDS),
        )

    def stop(self, name: str) -> None:
        """SIGSTOP."""
        del self._resumed[name]
        self.bridges[name].signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self._resumed[name] = time.monotonic()
        self.bridges[name].signal(signal.SIGCONT)

    def kill(self, name: str) -> None:
        """SIGKILL, and start another."""
        self.bridges[name].kill()
        self.start(name)

    def dialled(self, name: str) -> None:
        """Note a handshake, before it is answered."""
        self.dials[self._kind(name)] += 1
        self.connected = name

    def _kind(self, name: str) -> str:
        if not self.is_connected:
            return "free"
        resumed_at = self._resumed.get(self.connected)
        if resumed_at is None:
            return "takeover"
        just_resumed = time.monotonic() - resumed_at < NOTICE_SECONDS
        return "overlap" if just_resumed and name != self.connected else "second"

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self.feed._provider.active is not None

    async def connection(self) -> None:
        """Wait until there is a connection. Fails if a bridge has ended."""

        def connected() -> bool:
            for bridge in self.bridges.values():
                assert bridge.process.poll() is None, bridge.text()
            return self.is_connected

        await until(connected, "a connection")

    def count(self, event: str, reason: str = "") -> int:
        """Return how many log lines of all processes have this event, and a reason with this text."""
        lines = (line for bridge in self._place.bridges for line in bridge.lines())
        return sum(line.get("event") == event and reason in line.get("reason", "") for line in lines)


async def test_stops(place: Place) -> None:
    random, began = Random(SEED), time.monotonic()
    pair = Pair(place)

    class Watched(SimulatorSettings):
        def handshake(self, query: str, header: Callable[[str], str]) -> Handshake:
            pair.dialled(header(HEADER))
            return super().handshake(query, header)

    # A stopped process keeps its connection, so the provider must let another one replace it.
    settings = Watched(port=0, seed=SEED, rate=RATE, limits_scale=SCALE, second="replace")
    outlived = kills = 0
    async with Simulator(settings) as pair.feed:
        for name in ("bridge-a", "bridge-b"):
            pair.start(name)
        for _ in range(STOPS):
            await pair.connection()
            await asyncio.sleep(random.uniform(0, PAUSE_SECONDS))
            stopped, seconds = pair.connected, random.triangular(SHORTEST, LONGEST, MOST_LIKELY)
            pair.stop(stopped)
            outlived += seconds > SESSION_SECONDS
            if random.random() < KILLED:
                before = random.uniform(0, seconds)
                await asyncio.sleep(before)
                killed, kills = random.choice(sorted(pair.bridges)), kills + 1
                pair.kill(killed)
                await asyncio.sleep(seconds - before)
            else:
                killed = ""
                await asyncio.sleep(seconds)
            if killed != stopped:
                pair.resume(stopped)
        await pair.connection()
        tally = await place.settled(pair.feed, pair.bridges[pair.connected])
        for bridge in pair.bridges.values():
            assert await bridge.end() == 0
        breaches = [str(breach) for breach in pair.feed.breaches]
    figures = {
        "campaign": "stops",
        "seed": SEED,
        "stops": STOPS,
        "outlived_the_session": outlived,
        "kills": kills,
        "dials": dict(pair.dials),
        "closed_after_the_handshake": pair.count("ownership lost", "while connecting"),
        "ownership_lost": pair.count("ownership lost"),
        "bets": tally.sent,
        "lost": tally.missing,
        "doubled": tally.duplicates,
        "changed_or_taken_back": len(tally.wrong),
        "breaches": len(breaches),
        "took_seconds": round(time.monotonic() - began),
    }
    print(json.dumps(figures), flush=True)
    assert_exact(tally)
    assert (pair.dials["second"], breaches) == (0, [])
    assert pair.dials["takeover"] >= outlived // 2  # the others had no standby, or a limit was in the way
    place.balanced_counters()
