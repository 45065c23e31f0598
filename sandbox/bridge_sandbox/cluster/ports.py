"""Which ports the embedded servers listen on. All of them are on the loopback address only."""

from __future__ import annotations

import random
import socket
from collections.abc import Container, Sequence
from typing import NamedTuple

from bridge.errors import DevError
from bridge_sandbox.cluster.files import Progress
from bridge_sandbox.provider.http_server import taken

HOST = "127.0.0.1"
KAFKA_PORT = 9092
REGISTRY_PORT = 8080
FREE_RANGE = range(20_000, 32_768)
"""Below the range from which Linux and macOS take the ports of outgoing connections. A client that keeps
connecting to a stopped broker could otherwise get that very port, connect to itself and hold it."""


class Listener(NamedTuple):
    """The ports of one broker."""

    client: int
    controller: int


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        # BSD lets a specific address be bound beside a wildcard: what answers is taken all the same.
        if probe.connect_ex((HOST, port)) == 0:
            return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does: TIME_WAIT is free
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(exclude: Container[int] = ()) -> int:
    """A port that is free now and not in `exclude`. Chosen at random, so that two starts seldom collide."""
    while True:
        port = random.choice(FREE_RANGE)
        if port not in exclude and is_free(port):
            return port


def choose(
    brokers: int,
    kafka_port: int | None,
    registry_port: int | None,
    progress: Progress,
    last: Sequence[int] = (),
) -> tuple[list[Listener], int]:
    """Return the ports of every broker and of the registry, all different.

    Each is the one given, or by default that of the `last` start (the registry's first) or a usual one. Where
    one of these is taken it is another, and `progress` reports both. 0 is any free port. Raises DevError for
    one that is given and taken.
    """
    used: set[int] = set()
    usual = [REGISTRY_PORT, *range(KAFKA_PORT, KAFKA_PORT + brokers)]
    if len(last) == len(usual):
        usual = [*last]
    if registry_port is not None:
        usual[0] = registry_port
    if kafka_port is not None:
        usual[1:] = [kafka_port and kafka_port + node for node in range(brokers)]

    def take(name: str, wanted: int, given: int | None = None) -> int:
        port = wanted if wanted and wanted not in used and is_free(wanted) else free_port(used)
        if wanted not in (0, port):
            if given is not None:
                raise DevError(f"{name}: {taken(wanted)}. Stop that, or choose another; 0 is any free one.")
            progress(f"{name}: port {wanted} is taken, using {port}")
        used.add(port)
        return port

    http_port = take("registry", usual[0], registry_port)
    listeners = [
        Listener(take(f"kafka-{node}", usual[node], kafka_port), take("controller", 0))
        for node in range(1, brokers + 1)
    ]
    return listeners, http_port
