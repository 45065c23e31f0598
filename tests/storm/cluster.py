"""Three brokers whose connections can be disturbed, each pair on its own.

    source      target               how it gets to the link
    bridge-1    kafka-1 … kafka-3    each broker has a listener for each bridge, advertised at the link
    bridge-1    provider, registry   its settings name the link
    kafka-1     kafka-2, kafka-3     brokers and controllers advertise themselves by names, and the hosts file
                                     of each JVM has the links under these names
    the judge   all                  directly

A link listens at the loopback address 127.0.SOURCE.TARGET, at the target's port. So it needs no port of its
own, but Linux, where all of 127.0.0.0/8 is loopback.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bridge_sandbox.cluster import ports
from bridge_sandbox.cluster.cluster import Cluster, PortTaken, prepare
from bridge_sandbox.cluster.downloads import Artifacts
from bridge_sandbox.cluster.files import silent, write_atomically
from bridge_sandbox.cluster.ports import HOST, Listener
from tests.storm.network import Network

BROKERS = ("kafka-1", "kafka-2", "kafka-3")
PROVIDER, REGISTRY = "provider", "registry"
_HOSTS_FILE = "hosts"
_NUMBERS = {name: number for number, name in enumerate((*BROKERS, PROVIDER, REGISTRY), 1)}
_FIRST_BRIDGE = 10
_PORT_ATTEMPTS = 5


def link(source: str, target: str) -> str:
    """Return the name of the link from one to another."""
    return f"{source}>{target}"


class Brokers(Cluster):
    """Three brokers and a registry, with a listener for each bridge. A context manager."""

    def __init__(
        self, data: Path, artifacts: Artifacts, registry_port: int, network: Network, bridges: int
    ) -> None:
        self.network = network
        self.bridges = [f"bridge-{number}" for number in range(1, bridges + 1)]
        taken = {registry_port}

        def port() -> int:
            taken.add(found := ports.free_port(taken))
            return found

        self._between = {broker: port() for broker in BROKERS}
        self._of_bridges = {link(bridge, broker): port() for bridge in self.bridges for broker in BROKERS}
        self._client = [Listener(port(), port()) for _ in BROKERS]
        super().__init__(data, artifacts, self._client, registry_port)
        for broker in BROKERS:
            server = self.servers[broker]
            server.command = [server.command[0], f"-Djdk.net.hosts.file={_HOSTS_FILE}", *server.command[1:]]
            write_atomically(server.directory / _HOSTS_FILE, _hosts(broker))
        self._open_links()

    def properties(self, node: int) -> str:
        """Return the settings of a broker, with its further listeners."""
        own = f"kafka-{node}"
        client, controller = self._client[node - 1]
        bridges = {bridge: self._of_bridges[link(bridge, own)] for bridge in self.bridges}
        names = {bridge: bridge.upper().replace("-", "") for bridge in bridges}
        local = [
            f"PLAINTEXT://{HOST}:{client}",
            f"CONTROLLER://{HOST}:{controller}",
            f"BETWEEN://{HOST}:{self._between[own]}",
            *(f"{names[bridge]}://{HOST}:{port}" for bridge, port in bridges.items()),
        ]
        advertised = [
            f"PLAINTEXT://{HOST}:{client}",
            f"CONTROLLER://{own}:{controller}",
            f"BETWEEN://{own}:{self._between[own]}",
            *(f"{names[bridge]}://{_address(bridge, own)}:{port}" for bridge, port in bridges.items()),
        ]
        protocols = ["PLAINTEXT", "CONTROLLER", "BETWEEN", *names.values()]
        voters = [f"{number}@kafka-{number}:{it.controller}" for number, it in enumerate(self._client, 1)]
        more = {
            "listeners": ",".join(local),
            "advertised.listeners": ",".join(advertised),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in protocols),
            "inter.broker.listener.name": "BETWEEN",
            "controller.quorum.voters": ",".join(voters),
        }
        return super().properties(node) + "".join(f"{name}={value}\n" for name, value in more.items())

    def bootstrap_servers_of(self, bridge: str) -> str:
        """Return the brokers' addresses for a bridge: its links."""
        return ",".join(f"{_address(bridge, to)}:{self._of_bridges[link(bridge, to)]}" for to in BROKERS)

    def url_of(self, bridge: str, target: str, url: str) -> str:
        """Return the URL of the provider or the registry for a bridge: its link."""
        return url.replace(f"//{HOST}:", f"//{_address(bridge, target)}:")

    def open_provider(self, url: str) -> None:
        """Open the links of the bridges to the provider."""
        self._open_to(PROVIDER, urlsplit(url).port or 0)

    def _open_links(self) -> None:
        for source in BROKERS:
            for target, listener in zip(BROKERS, self._client, strict=True):
                if source != target:
                    for port in (self._between[target], listener.controller):
                        self._open(source, target, port)
        for bridge in self.bridges:
            for broker in BROKERS:
                self._open(bridge, broker, self._of_bridges[link(bridge, broker)])
        self._open_to(REGISTRY, self._registry_port)

    def _open_to(self, target: str, port: int) -> None:
        for bridge in self.bridges:
            self._open(bridge, target, port)

    def _open(self, source: str, target: str, port: int) -> None:
        self.network.open(link(source, target), (_address(source, target), port), (HOST, port))


@contextmanager
def brokers(data: Path, bridges: int) -> Iterator[Brokers]:
    """Start three brokers, a registry and the network between them and some bridges."""
    artifacts, attempts = prepare(silent), 0
    while True:
        with Network() as network:
            try:
                with Brokers(data, artifacts, ports.free_port(), network, bridges).start(silent) as running:
                    yield running
                    running.close(grace=0)
                return
            except PortTaken:
                attempts += 1
                if attempts == _PORT_ATTEMPTS:
                    raise


def _address(source: str, target: str) -> str:
    number = _NUMBERS.get(source) or _FIRST_BRIDGE + int(source.removeprefix("bridge-"))
    return f"127.0.{number}.{_NUMBERS[target]}"


def _hosts(broker: str) -> str:
    """The hosts file of a broker's JVM, which resolves no other names."""
    others = [f"{_address(broker, other)} {other}" for other in BROKERS if other != broker]
    return "\n".join([f"{HOST} {broker} localhost {socket.gethostname()}", *others, ""])
