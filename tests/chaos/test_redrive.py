"""1,000 dead letters of a live feed are redriven on a real Kafka by processes killed at ten places."""

from __future__ import annotations

import json
import os
import time

from tests.harness import Place
from tests.integration.redriven import Redriven, kills, simulator

LETTERS = int(os.environ.get("LETTERS", "1000"))
SEED = int(os.environ.get("SEED", "1"))


async def test_redrive(place: Place) -> None:
    began = time.monotonic()
    async with simulator(history_seconds=LETTERS / 50, seed=SEED) as feed:
        bets = Redriven(place, feed)
        await bets.fill(LETTERS)
        letters, left = len(bets.letters()), []
        for number, kill in enumerate(kills(LETTERS // 100)):
            await bets.killed(*kill)
            left.append(letters - len(bets.letters("redrive")))
            if number % 3 == 2:
                await bets.run_a_bridge()
        report = await bets.finished()
        outcomes = await bets.check()
        published, breaches = len(place.read("bets")), len(feed.breaches)
    figures = {
        "campaign": "redrive",
        "seed": SEED,
        "letters": letters,
        "kills": len(left),
        "left_after_each": left,
        "last_redrive": report["letters"],
        "outcomes": dict(outcomes),
        "bets": published,
        "breaches": breaches,
        "took_seconds": round(time.monotonic() - began),
    }
    print(json.dumps(figures), flush=True)
    assert breaches == 0
