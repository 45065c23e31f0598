"""Which ports the embedded servers listen on. All of them are on the loopback address only."""

from __future__ import annotations

import random
import socket
from collections.abc import Container

from bridge.sandbox.cluster.progress import Progress

HOST = "127.0.0.1"
FREE_RANGE = range(20_000, 32_768)
"""Below the range from which Linux and macOS take the ports of outgoing connections. A client that keeps
dialling a stopped broker could otherwise be given that very port, connect to itself and hold it."""


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


def choose(name: str, wanted: int, exclude: Container[int], progress: Progress) -> int:
    """`wanted` where it is free, otherwise another, with a line that says so. 0 is any free port."""
    if wanted == 0:
        return free_port(exclude)
    if wanted not in exclude and is_free(wanted):
        return wanted
    port = free_port(exclude)
    progress(f"{name}: port {wanted} is taken, using {port}")
    return port
