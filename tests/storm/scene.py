"""What a storm goes over: brokers, bridges, network and simulator, and the history of it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import NewTopic

from tests.chaos.provider import Provider
from tests.judge.timeline import Gap
from tests.storm.cluster import PROVIDER, link
from tests.storm.network import Network
from tests.storm.processes import HeldBridge, HeldServer

OWNER = "owner"
"""Stands for the bridge that owns the feed when a fault begins."""


class History:
    """What happened when: a file with a JSON object on each line."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()

    def __call__(self, what: str, whom: str = "", **more: Any) -> None:
        """Write a line, with the time in Unix seconds."""
        line = json.dumps({"at": round(time.time(), 3), "what": what, "whom": whom, **more})
        with self._lock, self._file.open("a") as file:
            file.write(line + "\n")


@dataclass
class Scene:
    """Everything that a fault may touch."""

    bootstrap_servers: str
    """Of the brokers themselves, past the network with faults."""
    prefix: str
    provider: Provider
    network: Network
    note: History
    bridges: dict[str, HeldBridge] = field(default_factory=dict)
    servers: dict[str, HeldServer] = field(default_factory=dict)
    """Brokers and registry."""
    aimed: dict[str, str] = field(default_factory=dict)
    """Whom faults that were to hit the owner, or a connection, hit, by their keys."""
    stray: set[str] = field(default_factory=set)
    """The keys of those that found no owner, and hit another bridge."""
    felt: set[str] = field(default_factory=set)
    """The keys of faults of the network that a connection has felt."""
    began: float = 0.0
    """Unix seconds from which on the bridges have asked the provider."""
    start: str = ""
    """The setting `feed.start` of the bridges that start next."""
    registry_url: str = ""
    configs_tool: Sequence[str] = ()
    """Kafka's command that changes quotas."""
    read_gaps: Callable[[], list[Gap]] = list
    """Returns the gaps that are declared."""
    quotas: dict[str, int] = field(default_factory=dict)
    topics_are_made: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by who makes topics anew: a copy with a hole in it is not noticed (decision 0045)."""
    quota_is_set: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Bytes a second, by the key of the fault."""
    manifests: dict[str, NewTopic] = field(default_factory=dict)
    """How the topics are made anew."""
    made_anew: dict[str, float] = field(default_factory=dict)
    """The topics that were, without the prefix, and when last, Unix seconds."""
    busy: set[str] = field(default_factory=set)
    """The keys of faults by which some are about to be."""
    moved_to: list[int] = field(default_factory=list)
    """Where the operator has set the position to after that."""
    is_copied: bool = False
    """Whether they are copies of others."""
    gaps: list[Gap] = field(default_factory=list)
    """Those of a topic that is no more."""
    partitions: dict[str, int] = field(default_factory=dict)
    """How many partitions topics had, before some were added."""
    foreign: dict[str, Producer] = field(default_factory=dict)
    """Producers with an open transaction, by the key of the fault."""

    def hit(self, name: str, key: str) -> str:
        """Return the bridge that a fault hits until its end: itself, or for `OWNER` the owner at its begin.

        That is the one with a connection to the provider; the first of all without one.
        """
        if name == OWNER and key not in self.aimed:
            count = {bridge: self.network.connections(link(bridge, PROVIDER)) for bridge in self.bridges}
            self.aimed[key] = max(count, key=lambda bridge: count[bridge])
            if not count[self.aimed[key]]:
                self.stray.add(key)
            self.note("aimed", key, bridge=self.aimed[key], connected=key not in self.stray)
        return self.aimed[key] if name == OWNER else name

    async def watch(self) -> None:
        """Restart what has ended, until cancelled."""
        while True:
            for server in self.servers.values():
                await server.watch()
            for bridge in self.bridges.values():
                await bridge.watch()
            await asyncio.sleep(0.1)

    async def control(self, fault: str, **parameters: Any) -> str | None:
        """Inject a fault into the provider. Returns the bridge that had a connection, if one had."""

        connections = await self.provider.get("/connections")
        await self.provider.post(f"/faults/{fault}", **parameters)
        return connections[0]["client"] if connections else None

    async def attempt(self, failure: str, call: Callable[[], object]) -> bool:
        """Call Kafka in a thread; return whether the answer is not false.

        That it fails in a storm is noted, and no failure of the round.
        """
        try:
            return await asyncio.to_thread(call) is not False
        except KafkaException as error:
            self.note(failure, reason=str(error))
            return False
