"""Beats of systemd's watchdog (sd_notify): what a liveness probe asks for, this tells by itself."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

BEATS = 4
"""In each time after which systemd, hearing none, kills the process."""


@contextmanager
def watched(healthy: Callable[[], bool]) -> Iterator[None]:
    """Send beats inside the block, but none while `healthy` says no; nothing where no watchdog runs.

    A thread asks and sends: an event loop that hangs cannot say so.
    """
    address, micros = os.environ.get("NOTIFY_SOCKET"), os.environ.get("WATCHDOG_USEC")
    if not address or not micros or os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        yield
        return
    if address.startswith("@"):  # an abstract name
        address = f"\0{address[1:]}"
    over = threading.Event()

    def beat() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            while True:
                if healthy():
                    with suppress(OSError):  # the next one may arrive
                        sender.sendto(b"WATCHDOG=1", address)
                if over.wait(int(micros) / 1e6 / BEATS):
                    return

    threading.Thread(target=beat, name="watchdog", daemon=True).start()
    try:
        yield
    finally:
        over.set()
