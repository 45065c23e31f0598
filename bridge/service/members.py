"""Who is in the owner group, as a standby and an owner see it."""

from __future__ import annotations

import asyncio
from typing import NoReturn

from bridge.clock import Clock
from bridge.config import KafkaSettings
from bridge.kafka import clients
from bridge.kafka.blocking import BackgroundProbe
from bridge.kafka.errors import KafkaUnavailable
from bridge.log import get
from bridge.ownership.election import LeaderElection
from bridge.ownership.group import Group, StandbyWait, WaitEstimate
from bridge.records.checkpoint import State
from bridge.service import memory
from bridge.service.status import Status

STANDBY_SECONDS = 2.0
"""How often a standby checks who owns the feed, and whether Kafka answers."""
OWNER_SECONDS = 10.0
"""How often an owner looks who stands by."""


class Members:
    """Looks at the group until cancelled."""

    def __init__(self, settings: KafkaSettings, owner_id: str, status: Status, clock: Clock) -> None:
        self._settings = settings
        self.owner_id = owner_id
        """The name of this process among them."""
        self._status = status
        self._clock = clock
        self.group: Group | None = None
        """The members of the owner group, None while they are unknown."""
        self.refusal = ""
        """Why Kafka does not let this process into the group."""
        self.succeeded = False
        """Whether another process has owned the feed since this one did, and knows it better."""

    async def watch_as_standby(self, leadership: LeaderElection) -> NoReturn:
        """Keep the state current: whom this process stands by for, or that Kafka is unreachable."""
        probe = BackgroundProbe(self._settings, "standby")
        standby = StandbyWait(self.owner_id, clients.session_seconds(self._settings))
        try:
            while True:
                try:
                    self.group = group = await probe.run(leadership.look)
                except KafkaUnavailable as error:
                    self.group = None
                    self._status.become(State.WAITING_FOR_KAFKA, str(error))
                else:
                    self.refusal = leadership.refusal
                    self.succeeded |= bool(group and group.owner_hosts)
                    wait = WaitEstimate(self.refusal)  # an earlier reason may be outdated
                    if group is not None and not self.refusal:
                        wait = standby.estimate(group, self._clock())
                    self._status.become(State.STANDBY, wait.reason, until=wait.until)
                memory.release_free_memory()
                await asyncio.sleep(STANDBY_SECONDS)
        finally:
            self.refusal = ""
            probe.close()

    async def watch_as_owner(self, leadership: LeaderElection) -> NoReturn:
        """Keep the members current while this process owns the feed."""
        self.succeeded = False
        probe = BackgroundProbe(self._settings, "group")
        told = set[type[Exception]]()
        try:
            while True:
                try:
                    self.group = await probe.run(leadership.look)
                    told.clear()
                except Exception as error:  # noqa: BLE001  # whatever it is, the feed goes on
                    self.group = None
                    if type(error) not in told:
                        told.add(type(error))
                        get().warning("members of the owner group unknown", reason=str(error) or repr(error))
                await asyncio.sleep(OWNER_SECONDS)
        finally:
            probe.close()
