"""The least that a message costs to receive."""

from __future__ import annotations

import socket
from threading import Thread

import pytest

from benchmarks.limit import receive
from benchmarks.process import BenchmarkFailed


def test_all_bytes_are_received_and_cut_into_pieces() -> None:
    here, there = socket.socketpair()
    with here, there:
        sender = Thread(target=there.sendall, args=(bytes(400 * 2048),))
        sender.start()
        assert receive(here, 400 * 2048, 2048) >= 400
        sender.join()


def test_a_connection_that_closes_early_is_an_error() -> None:
    here, there = socket.socketpair()
    with here:
        with there:
            there.sendall(bytes(100))
        with pytest.raises(BenchmarkFailed):
            receive(here, 101, 100)
