"""All faults, by name."""

from __future__ import annotations

import re

from tests.storm.faults import (
    Abort,
    BlackHole,
    ClockJump,
    Cut,
    Drop,
    Election,
    Fault,
    ForeignTransaction,
    Forget,
    FullDisk,
    Garbage,
    HalfOpen,
    HungLog,
    KillBridge,
    KillBrokers,
    Late,
    Narrow,
    OneWayCut,
    Refusals,
    RegistryDown,
    Reset,
    RestartBroker,
    RollingUpdate,
    StopBridge,
    StopBroker,
    Surge,
    TerminateBridge,
)
from tests.storm.identities import IdGivenAway, LaggingMirror, PartitionsAdded, Quota, TopicAnew


def _named(kind: type[Fault]) -> str:
    return re.sub("(?<=.)([A-Z])", r"-\1", kind.__name__).lower()


FAULTS: dict[str, type[Fault]] = {
    _named(kind): kind
    for kind in (
        KillBridge,
        TerminateBridge,
        StopBridge,
        RollingUpdate,
        KillBrokers,
        RestartBroker,
        StopBroker,
        FullDisk,
        Election,
        Cut,
        OneWayCut,
        BlackHole,
        Late,
        Narrow,
        Reset,
        Refusals,
        HalfOpen,
        Garbage,
        Drop,
        Abort,
        Surge,
        Forget,
        ClockJump,
        RegistryDown,
        ForeignTransaction,
        HungLog,
        Quota,
        TopicAnew,
        PartitionsAdded,
        LaggingMirror,
        IdGivenAway,
    )
}
"""`kill-bridge` is `KillBridge`."""
