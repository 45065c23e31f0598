"""Which ports the embedded servers get."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from bridge.sandbox.cluster import ports
from bridge.sandbox.cluster.lifecycle import choose_ports


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which someone listens."""
    with socket.create_server((ports.HOST, 0)) as server:
        yield server.getsockname()[1]


def test_a_port_with_a_listener_is_not_free(taken: int) -> None:
    assert not ports.is_free(taken)


def test_a_listener_on_every_interface_takes_the_port_too() -> None:
    """A wildcard listener would get our clients' connections."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        assert not ports.is_free(server.getsockname()[1])


def test_a_free_port_is_used_as_asked_without_a_line() -> None:
    wanted, lines = ports.free_port(), list[str]()
    assert ports.choose("registry", wanted, (), lines.append) == wanted
    assert lines == []


def test_a_taken_port_is_replaced_and_reported(taken: int) -> None:
    lines = list[str]()
    port = ports.choose("registry", taken, (), lines.append)
    assert port != taken
    assert ports.is_free(port)
    assert lines == [f"registry: port {taken} is taken, using {port}"]


def test_ports_of_a_cluster_are_all_different() -> None:
    """Brokers, controllers and registry, even where one wants what another has."""
    wanted = ports.free_port()
    listeners, registry_port = choose_ports(3, wanted, wanted, lambda line: None)
    found = [port for listener in listeners for port in listener] + [registry_port]
    assert len(set(found)) == 7
    assert registry_port == wanted


def test_port_zero_is_any_free_port_for_every_broker() -> None:
    lines = list[str]()
    listeners, registry_port = choose_ports(2, 0, 0, lines.append)
    assert lines == []
    assert min(registry_port, *(listener.client for listener in listeners)) >= 20_000


def test_free_ports_are_below_those_of_outgoing_connections() -> None:
    """A client must not be given a stopped broker's port as its own."""
    assert all(20_000 <= ports.free_port() < 32_768 for _ in range(20))
