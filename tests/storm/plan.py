"""What happens in a round, all of it drawn from a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.storm.faults import Fault
from tests.storm.kinds import FAULTS

CALM_SECONDS = 3.0
"""Without faults, at the beginning."""
_SECONDS_FOR_EACH = 6.0
"""A round has one fault for so many seconds, so that some overlap and the bridge gets ahead at times."""


@dataclass(frozen=True)
class Step:
    """A fault, when it begins and how long it lasts, in seconds of the round."""

    at: float
    seconds: float
    name: str
    fault: Fault

    def json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        times = {"at": round(self.at, 2), "seconds": round(self.seconds, 2)}
        return {**times, "fault": self.name, **self.fault.parameters()}


@dataclass(frozen=True)
class Plan:
    """A round. The same arguments of `draw` give the same plan; what follows from it is up to the machine."""

    seed: int
    seconds: float
    rate: float
    """Messages a second, without surges."""
    bridges: int
    second: str
    """What the provider does with a second connection: `refuse` or `replace`."""
    compacts: bool
    """Whether topics have the smallest segments, and checkpoints are compacted all the time."""
    steps: tuple[Step, ...]

    def json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return vars(self) | {"steps": [step.json() for step in self.steps]}


def draw(seed: int, seconds: float, rate: float, kinds: Collection[str] = FAULTS) -> Plan:
    """Draw a round of so many seconds with faults of these kinds."""
    random = Random(f"storm {seed}")
    bridges = random.choice((2, 2, 3))
    second, compacts = random.choice(("refuse", "replace")), random.random() < 0.5
    names, drawn = [name for name in FAULTS if name in kinds], Counter[str]()
    weights = [FAULTS[name].weight for name in names]
    steps: list[Step] = []
    while len(steps) < seconds / _SECONDS_FOR_EACH and any(drawn[name] < FAULTS[name].most for name in names):
        [name] = random.choices(names, weights)
        kind = FAULTS[name]
        at, lasts = random.uniform(CALM_SECONDS, seconds), kind.seconds(random)
        fault = kind.draw(random, [f"bridge-{number}" for number in range(1, bridges + 1)])
        drawn[name] += 1
        if drawn[name] <= kind.most:
            steps.append(Step(at, min(lasts, max(0.0, seconds - at)), name, fault))
    steps.sort(key=lambda step: step.at)
    return Plan(seed, seconds, rate, bridges, second, compacts, tuple(steps))
