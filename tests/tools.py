"""Programs that tests run, which not every machine has, and servers of their own."""

from __future__ import annotations

import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import TCPServer
from typing import Any, NoReturn

import pytest

ROOT = Path(__file__).parents[1]


def ran(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, by default in the checkout; its output is captured as text."""
    given: dict[str, Any] = {
        "cwd": ROOT,
        "capture_output": True,
        "text": True,
        "check": False,
        "timeout": 600,
    }
    done: subprocess.CompletedProcess[Any] = subprocess.run(command, **given | options)
    return done


def lacking(what: str) -> NoReturn:
    """Skip the test. Fail it in CI, which has all of them: else a check would do nothing, and nobody knew."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


@contextmanager
def serves(server: TCPServer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Have a server serve, and end it whatever happens; the address, as of HTTP.

    A thread that outlives its server goes on to wait for the descriptor, and with that keeps open whatever
    socket has the number next.
    """
    with server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
