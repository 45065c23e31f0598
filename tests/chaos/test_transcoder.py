"""A long comparison of the two ways of converting messages: a line of figures."""

from __future__ import annotations

import json
import os
from collections import Counter
from random import Random

from bridge.avro.encoder import compiled
from bridge.messages.model import omittable_fields
from tests.mutations import COSTLY, MUTATIONS, ORIGINALS, Comparison, mutated

MESSAGES = int(os.environ.get("MESSAGES", "100000"))
SEED = int(os.environ.get("SEED", "1"))
WEIGHTS = [1 if name in COSTLY else 30 for name in MUTATIONS]


def test_transcoder_beside_pydantic() -> None:
    random = Random(SEED)
    optional = [*omittable_fields()]
    some = [random.sample(optional, count) for count in (1, 5, 15)]
    ways = [Comparison(*fields) for fields in ([], optional, *some)]
    figures: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {name: Counter() for name in MUTATIONS}
    for _ in range(MESSAGES):
        mutations = random.choices(MUTATIONS, WEIGHTS, k=random.choice([1, 1, 2, 3, 4]))
        data = mutated(random.choice(ORIGINALS), mutations, random)
        outcome = random.choice(ways).outcome(data)
        traits = ["messages", *outcome.traits, *["accepted"] * outcome.accepted]
        traits += ["accepted with extras"] * (outcome.accepted and "extras" in traits)
        figures.update(traits)
        for name in mutations:
            kinds[name].update(["messages", *["accepted"] * outcome.accepted])
    assert all(kind["accepted"] for kind in kinds.values())
    line = {"campaign": "transcoder", "seed": SEED, "compiled": compiled(), **figures, "mutations": kinds}
    print(json.dumps(line), flush=True)
