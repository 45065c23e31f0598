"""Which ports the embedded servers get."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest

from bridge.errors import DevError
from bridge_sandbox.cluster import ports


@pytest.mark.parametrize("host", [ports.HOST, "0.0.0.0"])
@pytest.mark.parametrize("given", [{"kafka_port": True}, {"registry_port": True}], ids=str)
def test_a_given_port_that_is_taken_is_an_error_with_its_holder(host: str, given: dict[str, bool]) -> None:
    with socket.create_server((host, 0)) as server:
        port = server.getsockname()[1]
        wanted: dict[str, Any] = {"kafka_port": 0, "registry_port": 0} | dict.fromkeys(given, port)
        holder = rf"port {port} is taken by \S+ \(pid {os.getpid()}\)\. Stop that, or choose another;"
        with pytest.raises(DevError, match=holder):
            ports.choose(1, **wanted, progress=print)


def test_ports_of_a_cluster_are_all_different() -> None:
    wanted, lines = ports.free_port(), list[str]()
    listeners, registry_port = ports.choose(3, None, None, lines.append, [wanted] * 4)
    found = [port for listener in listeners for port in listener] + [registry_port]
    assert len(set(found)) == 7
    assert registry_port == wanted
    assert lines[0].startswith(f"kafka-1: port {wanted} is taken, using ")


def test_the_ports_of_the_last_start_are_used_again() -> None:
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
    lines = list[str]()
    listeners, registry_port = ports.choose(9, 0, 0, lines.append)
    assert lines == []
    found = [port for listener in listeners for port in listener] + [registry_port]
    assert all(20_000 <= port < 32_768 for port in found)
