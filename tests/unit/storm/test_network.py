"""What a link does to its connections, on real sockets."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.storm.network import BUFFER_BYTES, Condition, Network, together
from tests.tools import serves

GENEROUS = 60.0
"""Seconds after which a socket that should answer is taken not to."""
BRIEF = 0.3
"""Seconds in which nothing must arrive."""
HOLE = Condition(holds_there=True, holds_back=True)


class Echo(socketserver.ThreadingTCPServer):
    """A server that sends back what it receives, and closes when the client does."""

    daemon_threads, block_on_close = True, False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ended = threading.Event()
        """Set once a connection has ended."""


class _Handler(socketserver.BaseRequestHandler):
    server: Echo

    def handle(self) -> None:
        with suppress(OSError):
            while data := self.request.recv(65_536):
                self.request.sendall(data)
        self.server.ended.set()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    with serves(server):
        yield server


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as running:
        yield running


@pytest.fixture
def address(network: Network, echo: Echo) -> tuple[str, int]:
    return network.open("a>b", ("127.0.0.1", 0), echo.socket.getsockname())


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, GENEROUS)


def answered(client: socket.socket, data: bytes) -> bytes:
    """Send data, and return as much of what comes back."""
    client.sendall(data)
    return received(client, len(data))


def received(client: socket.socket, size: int) -> bytes:
    client.settimeout(GENEROUS)
    got = b""
    while len(got) < size and (more := client.recv(size - len(got))):
        got += more
    return got


def is_silent(client: socket.socket) -> bool:
    client.settimeout(BRIEF)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    return False


def test_it_forwards_both_ways(network: Network, address: tuple[str, int], echo: Echo) -> None:
    data = bytes(range(256)) * (BUFFER_BYTES // 64)
    assert network.connections("a>b") == 0
    with connected(address) as client:
        threading.Thread(target=client.sendall, args=(data,), daemon=True).start()
        assert received(client, len(data)) == data
        assert network.connections("a>b") == 1
    assert echo.ended.wait(GENEROUS)


def test_a_cut_link_resets_and_refuses_until_it_is_mended(network: Network, address: tuple[str, int]) -> None:
    with connected(address) as client:
        assert answered(client, b"one") == b"one"
        network.begin("a>b", "f", Condition(cut=True))
        with pytest.raises(ConnectionResetError):
            received(client, 1)
    with pytest.raises(ConnectionRefusedError):
        connected(address)
    network.end("a>b", "f")
    with connected(address) as client:
        assert answered(client, b"two") == b"two"


def test_a_black_hole_accepts_and_answers_nothing_until_it_ends(
    network: Network, address: tuple[str, int], echo: Echo
) -> None:
    with connected(address) as client, connected(address) as leaving:
        assert answered(client, b"one") == b"one"
        assert answered(leaving, b"one") == b"one"
        network.begin("a>b", "f", HOLE)
        leaving.close()
        assert not echo.ended.wait(BRIEF)
        with connected(address) as late:
            client.sendall(b"two")
            late.sendall(b"three")
            assert is_silent(client)
            assert is_silent(late)
            network.end("a>b", "f")
            assert received(client, 3) == b"two"
            assert received(late, 5) == b"three"
            assert echo.ended.wait(GENEROUS)


@pytest.mark.parametrize("back", [False, True])
def test_a_one_way_cut_holds_one_direction(network: Network, back: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(GENEROUS)
        with connected(network.open("a>b", ("127.0.0.1", 0), server.getsockname())) as client:
            accepted, _ = server.accept()
            with accepted:
                unheard, heard = (accepted, client) if back else (client, accepted)
                network.begin("a>b", "f", Condition(holds_there=not back, holds_back=back))
                unheard.sendall(b"later")
                heard.sendall(b"heard")
                assert received(unheard, 5) == b"heard"
                assert is_silent(heard)
                network.end("a>b", "f")
                assert received(heard, 5) == b"later"


def test_a_delay_is_added_in_each_direction_and_a_throttle_holds_for_all_connections(
    network: Network, address: tuple[str, int]
) -> None:
    with connected(address) as one, connected(address) as two:
        network.begin("a>b", "slow", Condition(delay=0.1))
        began = time.monotonic()
        assert answered(one, b"0123456789") == b"0123456789"
        assert time.monotonic() - began >= 0.2
        network.end("a>b", "slow")
        network.begin("a>b", "narrow", Condition(bytes_per_second=1e6))
        began = time.monotonic()
        for client in (one, two):
            threading.Thread(target=client.sendall, args=(bytes(100_000),), daemon=True).start()
        assert [len(received(client, 100_000)) for client in (one, two)] == [100_000, 100_000]
        assert time.monotonic() - began >= 0.2


def test_a_reset_comes_in_the_middle_of_a_record(network: Network, address: tuple[str, int]) -> None:
    with connected(address) as client:
        assert answered(client, b"one") == b"one"
        assert network.reset("a>b") == 1
        client.sendall(b"half and half")
        assert received(client, 6) == b"half a"
        with suppress(ConnectionError):
            client.sendall(b"what follows is lost with the other half")
        with pytest.raises(ConnectionResetError):
            received(client, 1)
    with connected(address) as client:
        assert answered(client, b"two") == b"two"


def test_the_end_of_a_fault_tells_whether_a_connection_has_felt_it(
    network: Network, address: tuple[str, int]
) -> None:
    network.begin("a>b", "before", Condition(delay=0.01))
    assert not network.end("a>b", "before")
    network.begin("a>b", "first", Condition(delay=0.01))
    with connected(address) as client:
        assert answered(client, b"one") == b"one"
        network.begin("a>b", "second", HOLE)
        assert network.end("a>b", "first")
        assert network.end("a>b", "second")
        assert not network.end("a>b", "second")


def test_faults_add_up() -> None:
    assert together([]) == Condition()
    slow, late = Condition(bytes_per_second=1e6), Condition(delay=0.1, bytes_per_second=2e6)
    assert together([slow, late, HOLE]) == Condition(False, True, True, 0.1, 1e6)
