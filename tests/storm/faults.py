"""The faults of a storm. Each is drawn from a seed, begins and ends; any may overlap with any other.

A fault holds what it does under its own key, so that what two of them hold is free once both have ended.
"""

from __future__ import annotations

import asyncio
import json
import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import partial
from random import Random
from typing import Any, ClassVar, Self

from confluent_kafka import ElectionType, Producer
from confluent_kafka.admin import AdminClient

from tests.judge import Excuse
from tests.storm.cluster import BROKERS, PROVIDER, REGISTRY, link
from tests.storm.network import Condition
from tests.storm.processes import CLOSING_SECONDS, EXCUSED_SECONDS
from tests.storm.scene import OWNER, Scene

_KAFKA_SECONDS = 10
_FOREIGN_TIMEOUT_MS = 30_000
_UNKNOWN_FIELDS = 100
"""Each is a line of the log, of more than a hundred bytes."""


@dataclass(frozen=True)
class Fault(ABC):
    """A fault with what it was drawn with."""

    weight: ClassVar[float] = 1.0
    """How often it is drawn, compared with others."""
    most: ClassVar[int] = 1_000
    """How often it is drawn at most in a round."""
    shortest: ClassVar[float] = 1.0
    longest: ClassVar[float] = 20.0
    """Of its duration, in seconds; half of all are shorter than a quarter of the way between."""

    @classmethod
    def seconds(cls, random: Random) -> float:
        """Draw a duration."""
        return cls.shortest + (cls.longest - cls.shortest) * math.pow(random.random(), 2)

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        """Draw whom it hits, and how."""
        return cls()

    def excuses(self, scene: Scene, key: str, began: float, ended: float) -> list[Excuse]:
        """Return whose connection may be replaced because the holder could not close it, and when.

        To be asked once all is over, about a fault that has hit something.
        """
        return []

    @abstractmethod
    async def begin(self, scene: Scene, key: str) -> bool:
        """Begin it. Returns whether it has hit anything: a process, a connection, what is published next."""

    async def end(self, scene: Scene, key: str) -> None:  # noqa: B027 (many faults end by themselves)
        """End it. A fault of which only the end tells whether it has hit anything is then in `scene.felt`."""

    def parameters(self) -> dict[str, Any]:
        """Return what `FAULTS[name](**parameters)` takes."""
        return asdict(self)


@dataclass(frozen=True)
class _OfBridge(Fault):
    bridge: str

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(_bridge(random, bridges))


class KillBridge(_OfBridge):
    """SIGKILL; another one starts after a while."""

    weight = 3
    shortest, longest = 0.1, 15.0

    def excuses(self, scene: Scene, key: str, began: float, ended: float) -> list[Excuse]:
        return [Excuse(began, began + CLOSING_SECONDS, scene.hit(self.bridge, key))]

    async def begin(self, scene: Scene, key: str) -> bool:
        return scene.bridges[scene.hit(self.bridge, key)].take_down(key, kill=True)

    async def end(self, scene: Scene, key: str) -> None:
        scene.bridges[scene.hit(self.bridge, key)].let_up(key)


class TerminateBridge(KillBridge):
    """SIGTERM, which explains nothing: the bridge closes its connection first."""

    weight = 2

    def excuses(self, scene: Scene, key: str, began: float, ended: float) -> list[Excuse]:
        return []

    async def begin(self, scene: Scene, key: str) -> bool:
        return scene.bridges[scene.hit(self.bridge, key)].take_down(key, kill=False)


class StopBridge(_OfBridge):
    """SIGSTOP, and SIGCONT; the longest outlasts a session and a transaction."""

    weight = 4
    shortest, longest = 0.1, 60.0

    def excuses(self, scene: Scene, key: str, began: float, ended: float) -> list[Excuse]:
        bridge = scene.hit(self.bridge, key)
        return [Excuse(began, scene.bridges[bridge].holds_until(began, ended), bridge)]

    async def begin(self, scene: Scene, key: str) -> bool:
        return scene.bridges[scene.hit(self.bridge, key)].stop(key)

    async def end(self, scene: Scene, key: str) -> None:
        scene.bridges[scene.hit(self.bridge, key)].resume(key)


@dataclass(frozen=True)
class RollingUpdate(Fault):
    """All bridges end and start again, one after the other."""

    pause: float
    """Seconds that each is down."""

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(random.uniform(0.5, 3))

    async def begin(self, scene: Scene, key: str) -> bool:
        hit = False
        for bridge in scene.bridges.values():
            hit |= bridge.take_down(key, kill=False)
            await asyncio.sleep(self.pause)
            bridge.let_up(key)
        return hit


@dataclass(frozen=True)
class KillBrokers(Fault):
    """SIGKILL of one, two or all brokers."""

    brokers: tuple[str, ...]
    weight = 2

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        [count] = random.choices((1, 2, 3), (6, 2, 1))
        return cls(tuple(random.sample(BROKERS, count)))

    async def begin(self, scene: Scene, key: str) -> bool:
        return any(
            await asyncio.gather(*(scene.servers[name].take_down(key, kill=True) for name in self.brokers))
        )

    async def end(self, scene: Scene, key: str) -> None:
        for name in self.brokers:
            scene.servers[name].let_up(key)


@dataclass(frozen=True)
class _OfBroker(Fault):
    broker: str

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(random.choice(BROKERS))


class RestartBroker(_OfBroker):
    """A clean stop and a start."""

    async def begin(self, scene: Scene, key: str) -> bool:
        return await scene.servers[self.broker].take_down(key, kill=False)

    async def end(self, scene: Scene, key: str) -> None:
        scene.servers[self.broker].let_up(key)


class StopBroker(_OfBroker):
    """SIGSTOP, and SIGCONT."""

    weight = 2
    shortest, longest = 0.1, 30.0

    async def begin(self, scene: Scene, key: str) -> bool:
        return scene.servers[self.broker].stop(key)

    async def end(self, scene: Scene, key: str) -> None:
        scene.servers[self.broker].resume(key)


class FullDisk(_OfBroker):
    """No file of a broker may become longer: each write fails as on a full disk, and the broker gives up."""

    async def begin(self, scene: Scene, key: str) -> bool:
        return scene.servers[self.broker].fill_disk(key)

    async def end(self, scene: Scene, key: str) -> None:
        scene.servers[self.broker].empty_disk(key)


@dataclass(frozen=True)
class Election(Fault):
    """Every partition is to be led by its first replica again."""

    shortest, longest = 0.0, 0.0

    async def begin(self, scene: Scene, key: str) -> bool:
        def elect() -> bool:
            # In confluent-kafka 2.16 elect_leaders fails with any argument by name, such as a time-out.
            timeout = {"socket.timeout.ms": 1000 * _KAFKA_SECONDS}
            admin = AdminClient({"bootstrap.servers": scene.bootstrap_servers, "log_level": 0, **timeout})
            errors = admin.elect_leaders(ElectionType.PREFERRED).result().values()
            # The others are led by their first replica already. An error cannot be compared with None.
            return any(error is None for error in errors)

        return await scene.attempt("no election", elect)


@dataclass(frozen=True)
class _OfLinks(Fault):
    links: tuple[str, ...]
    weight = 1.5
    shortest, longest = 0.2, 30.0

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        bridge, broker, other = _bridge(random, bridges), *random.sample(BROKERS, 2)
        return cls(
            random.choice(
                [
                    (link(bridge, broker),),
                    tuple(link(bridge, each) for each in BROKERS),
                    (link(bridge, PROVIDER),),
                    (link(bridge, REGISTRY),),
                    (link(broker, other), link(other, broker)),
                    tuple(
                        link(*pair)
                        for each in BROKERS
                        if each != broker
                        for pair in ((broker, each), (each, broker))
                    ),
                ]
            )
        )

    def excuses(self, scene: Scene, key: str, began: float, ended: float) -> list[Excuse]:
        on = self.condition()
        if on.cut:  # the provider sees the reset
            until = began + CLOSING_SECONDS
        elif on.holds_there:
            until = ended + EXCUSED_SECONDS
        else:  # the end of a connection arrives
            return []
        victims = (each.split(">") for each in self.hit(scene, key))
        return [Excuse(began, until, bridge) for bridge, to in victims if to == PROVIDER]

    @abstractmethod
    def condition(self) -> Condition:
        """Return what becomes of the links."""

    async def begin(self, scene: Scene, key: str) -> bool:
        for each in self.hit(scene, key):
            scene.network.begin(each, key, self.condition())
        return False

    async def end(self, scene: Scene, key: str) -> None:
        for each in self.hit(scene, key):
            if scene.network.end(each, key):
                scene.felt.add(key)

    def hit(self, scene: Scene, key: str) -> list[str]:
        """Return the links that it hits."""
        return [link(scene.hit(source, key), to) for source, to in (each.split(">") for each in self.links)]


class Cut(_OfLinks):
    """Connections are reset, and new ones refused."""

    def condition(self) -> Condition:
        return Condition(cut=True)


@dataclass(frozen=True)
class OneWayCut(_OfLinks):
    """One direction passes nothing."""

    back: bool = False

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(super().draw(random, bridges).links, random.random() < 0.5)

    def condition(self) -> Condition:
        return Condition(holds_there=not self.back, holds_back=self.back)


class BlackHole(_OfLinks):
    """Connections stay open or are accepted, and pass nothing."""

    def condition(self) -> Condition:
        return Condition(holds_there=True, holds_back=True)


class Late(_OfLinks):
    """100 ms in each direction."""

    def condition(self) -> Condition:
        return Condition(delay=0.1)


class Narrow(_OfLinks):
    """3,000 kbit/s in each direction."""

    def condition(self) -> Condition:
        return Condition(bytes_per_second=3_000_000 / 8)


class Reset(_OfLinks):
    """Connections are reset in the middle of the next record."""

    shortest, longest = 0.0, 0.0

    def condition(self) -> Condition:
        return Condition()

    async def begin(self, scene: Scene, key: str) -> bool:
        return sum(scene.network.reset(each) for each in self.hit(scene, key)) > 0

    async def end(self, scene: Scene, key: str) -> None:
        """It has ended."""


@dataclass(frozen=True)
class Refusals(Fault):
    """Handshakes are refused: by a status of limits or of an outage, or by a close code."""

    answer: tuple[str, int]
    shortest, longest = 0.5, 10.0

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(
            random.choice([("status", 429), ("status", 503), ("close_code", 1013), ("close_code", 4000)])
        )

    async def begin(self, scene: Scene, key: str) -> bool:
        name, value = self.answer
        await scene.control("refuse", **{name: value})
        return await scene.control("drop") is not None

    async def end(self, scene: Scene, key: str) -> None:
        await scene.control("refuse", seconds=0)


class HalfOpen(Fault):
    """The connection passes nothing any more, not even pings."""

    shortest, longest = 1.0, 20.0

    def excuses(self, scene: Scene, key: str, began: float, ended: float) -> list[Excuse]:
        return [Excuse(began, ended + EXCUSED_SECONDS, scene.aimed[key])]

    async def begin(self, scene: Scene, key: str) -> bool:
        holder = await scene.control("half-open")
        if holder is not None:
            scene.aimed[key] = holder
        return holder is not None

    async def end(self, scene: Scene, key: str) -> None:
        await scene.control("half-open", seconds=0)


@dataclass(frozen=True)
class Garbage(Fault):
    """Malformed messages."""

    count: int
    shortest, longest = 0.0, 0.0

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(random.randint(1, 50))

    async def begin(self, scene: Scene, key: str) -> bool:
        await scene.control("garbage", count=self.count)
        return True


class Drop(Fault):
    """The provider closes the connection."""

    shortest, longest = 0.0, 0.0

    async def begin(self, scene: Scene, key: str) -> bool:
        return await scene.control("drop", code=1012) is not None


class Abort(Fault):
    """It breaks off during a surge, with frames under way."""

    shortest, longest = 0.2, 0.5

    async def begin(self, scene: Scene, key: str) -> bool:
        return await scene.control("surge", seconds=1) is not None

    async def end(self, scene: Scene, key: str) -> None:
        await scene.control("drop", abort=True)


class Surge(Fault):
    """5,000 messages a second."""

    shortest, longest = 0.5, 2.0

    async def begin(self, scene: Scene, key: str) -> bool:
        await scene.control("surge")
        return True

    async def end(self, scene: Scene, key: str) -> None:
        await scene.control("surge", seconds=0)


class Forget(Fault):
    """The provider forgets all but the last seconds, without notice, and drops the connection."""

    weight = 0.7
    shortest, longest = 0.0, 5.0

    async def begin(self, scene: Scene, key: str) -> bool:
        return await scene.control("drop") is not None

    async def end(self, scene: Scene, key: str) -> None:
        await scene.control("forget")


@dataclass(frozen=True)
class ClockJump(Fault):
    """The provider's clock steps, by less than the margins allow, and back."""

    by: float
    most = 1

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(random.uniform(-1.5, 1.5))

    async def begin(self, scene: Scene, key: str) -> bool:
        await scene.control("clock-jump", by=self.by)
        return True

    async def end(self, scene: Scene, key: str) -> None:
        await scene.control("clock-jump", by=-self.by)


class RegistryDown(Fault):
    """SIGKILL of the registry."""

    async def begin(self, scene: Scene, key: str) -> bool:
        return await scene.servers[REGISTRY].take_down(key, kill=True)

    async def end(self, scene: Scene, key: str) -> None:
        scene.servers[REGISTRY].let_up(key)


class ForeignTransaction(Fault):
    """Somebody leaves a transaction open on every partition of the bets; it is aborted in the end."""

    shortest, longest = 1.0, 20.0

    async def begin(self, scene: Scene, key: str) -> bool:
        producer = Producer(
            {
                "bootstrap.servers": scene.bootstrap_servers,
                "transactional.id": f"foreign-{key}",
                "transaction.timeout.ms": _FOREIGN_TIMEOUT_MS,
                "log_level": 0,
            }
        )

        def leave_open() -> bool:
            producer.init_transactions(_KAFKA_SECONDS)
            producer.begin_transaction()
            partitions = producer.list_topics(f"{scene.prefix}.bets", _KAFKA_SECONDS).topics
            for partition in partitions[f"{scene.prefix}.bets"].partitions:
                producer.produce(f"{scene.prefix}.bets", b"never visible", b"other", partition=partition)
            scene.foreign[key] = producer
            return producer.flush(_KAFKA_SECONDS) == 0

        return await scene.attempt("no foreign transaction", leave_open)

    async def end(self, scene: Scene, key: str) -> None:
        if key in scene.foreign:  # what is not aborted times out
            abort = partial(scene.foreign.pop(key).abort_transaction, _KAFKA_SECONDS)
            await scene.attempt("no abort", abort)


def _bridge(random: Random, bridges: list[str]) -> str:
    """Draw a bridge, in every other case the owner."""
    return random.choice([random.choice(bridges), OWNER])


@dataclass(frozen=True)
class HungLog(_OfBridge):
    """Nobody reads the log of a bridge, which has more to say than the pipe takes; then it is told to end."""

    most = 4
    shortest, longest = 15.0, 40.0

    async def begin(self, scene: Scene, key: str) -> bool:
        hit = scene.bridges[scene.hit(self.bridge, key)].hang_log(key)
        fields = {f"field {number} of {key}": None for number in range(_UNKNOWN_FIELDS)}
        await scene.control("garbage", body=json.dumps(fields))
        return hit

    async def end(self, scene: Scene, key: str) -> None:
        bridge = scene.bridges[scene.hit(self.bridge, key)]
        await bridge.end_unheard()
        bridge.read_log(key)
