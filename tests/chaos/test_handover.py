"""How long a hand-over takes, on three real brokers: from the event to the first new bet that is visible.

Two bridges have the product's own session time-out and margins. The one that owns the feed is ended
(SIGTERM), killed (SIGKILL) or stopped (SIGSTOP, resumed when the other has taken over), or the broker that
coordinates the owner group is killed. A `read_committed` consumer polls all the time. Time in the limits runs
`SCALE` times faster at both ends, so that the provider allows as many connections; none waits for a limit.

All times are compared as they are: those of the events and sights, the provider's, and those at which bridges
have received messages. They are this machine's clock; `same_clock` fails if the provider's has moved away.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from bridge_sandbox import cluster as dev
from tests.chaos.owners import judged
from tests.chaos.provider import Provider
from tests.chaos.rounds import Rounds
from tests.handover.figures import GOALS, Handover, summary, write
from tests.handover.pair import SCALE, Pair
from tests.handover.watcher import Watcher
from tests.harness import Place, until
from tests.processes import start_cold

FULL = 50
TIMES = int(os.environ.get("TIMES", FULL))
SEED = int(os.environ.get("SEED", "1"))
RATE = 200
CLOCK_SECONDS = 0.1
"""At most so far apart may the provider's clock and this process's be."""


async def same_clock(provider: Provider) -> None:
    """Fail if the provider's clock is not this process's."""
    before = time.time()
    now = (await provider.get("/state"))["now"]
    apart = max(before - now, now - time.time())
    assert apart < CLOCK_SECONDS, f"the provider's clock is {apart:.3f} s away: the figures are wrong"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dev.Cluster]:
    """Three brokers and a registry."""
    with dev.start(tmp_path_factory.mktemp("brokers"), kafka_port=0, registry_port=0, brokers=3) as running:
        yield running


async def hand_over(place: Place, kind: str, times: int) -> dict[str, Any]:
    """Measure an event so many times, and have the whole feed judged."""
    random = Random(f"{SEED} {kind}")
    settings = {"seed": SEED, "rate": RATE, "limits_scale": SCALE, "second": "replace", "ping_seconds": 1}
    provider = await Provider.start(place, **settings, compression="none")  # which would take it longer
    state = await provider.get("/state")
    with Watcher(place, state["origin"], RATE) as watcher:
        pair = Pair(place, provider, watcher)
        pair.start()
        await until(lambda: "Live" in place.bridges[-1].states(), "live", so_far=place.bridges[-1].text)
        watcher.begin()
        pair.start()
        found = []
        for number in range(times):
            found.append(await pair.measure(kind, random))
            print(json.dumps({"event": kind, "number": number + 1, **found[-1]._asdict()}), flush=True)
        await pair.steady()
        await same_clock(provider)
        judgement = await judged(place, provider, scale=SCALE, seed=SEED, excused=tuple(pair.excused))
    return {"event": kind, "handovers": [it._asdict() for it in found], **judgement.json()}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of `list_groups`, for which see `election.look`
@pytest.mark.parametrize("kind", GOALS)
async def test_handover(kind: str, cluster: dev.Cluster) -> None:
    rounds = Rounds("handover", {"times": TIMES, "seed": SEED})
    if (result := rounds.result(kind)) is None:
        directory = rounds.begin(kind)
        place = Place(cluster, f"handover-{kind.lower()}", directory, start=start_cold)
        try:
            result = await hand_over(place, kind, TIMES)
        finally:
            for bridge in place.bridges:
                bridge.kill()
        rounds.finish(kind, result)
    handovers = [Handover(**it) for it in result["handovers"]]
    figures = {"campaign": "handover", **result, "handovers": len(handovers), **summary(handovers)}
    print(json.dumps(figures), flush=True)
    assert result["anomalies"] == {}
    results = {kind: it for kind in GOALS if (it := rounds.result(kind)) and not it["anomalies"]}
    if TIMES >= FULL and len(results) == len(GOALS):
        write(results, FULL)
