"""Which ports the embedded servers get."""

from __future__ import annotations

import socket

import pytest

from bridge.sandbox.cluster import ports


@pytest.mark.parametrize("host", [ports.HOST, "0.0.0.0"])
def test_a_taken_port_is_replaced_and_reported(host: str) -> None:
    """A listener on every interface takes it too: it would get our clients' connections."""
    lines = list[str]()
    with socket.create_server((host, 0)) as server:
        taken = server.getsockname()[1]
        _, port = ports.choose(1, 0, taken, lines.append)
    assert port != taken
    assert ports.is_free(port)
    assert lines == [f"registry: port {taken} is taken, using {port}"]


def test_ports_of_a_cluster_are_all_different() -> None:
    """Brokers, controllers and registry, even where one wants what another has."""
    wanted, lines = ports.free_port(), list[str]()
    listeners, registry_port = ports.choose(3, wanted, wanted, lines.append)
    found = [port for listener in listeners for port in listener] + [registry_port]
    assert len(set(found)) == 7
    assert registry_port == wanted
    assert lines[0].startswith(f"kafka-1: port {wanted} is taken, using ")


def test_the_ports_of_the_last_start_are_used_again() -> None:
    """A port that is given, or that something else has taken, is another."""
    lines = list[str]()
    with socket.create_server((ports.HOST, 0)) as server:
        last = [ports.free_port(), server.getsockname()[1]]
        [listener], registry_port = ports.choose(1, None, None, lines.append, last)
        assert registry_port == last[0]
        assert lines == [f"kafka-1: port {last[1]} is taken, using {listener.client}"]
    [listener], registry_port = ports.choose(1, None, given := ports.free_port(last), lines.append, last)
    assert (listener.client, registry_port) == (last[1], given)
    assert len(lines) == 1


def test_port_zero_is_any_free_port_below_those_of_outgoing_connections() -> None:
    """A client must not be given a stopped broker's port as its own."""
    lines = list[str]()
    listeners, registry_port = ports.choose(9, 0, 0, lines.append)
    assert lines == []
    found = [port for listener in listeners for port in listener] + [registry_port]
    assert all(20_000 <= port < 32_768 for port in found)
