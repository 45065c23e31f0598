"""The network policies: each pod may talk to what it is set up to talk to, and to nothing else."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.repo.manifests import (
    BASE,
    K8S,
    OVERLAYS,
    PRODUCTION,
    RESOURCES,
    Resource,
    build,
    containers,
    environment,
    kustomization,
    kustomized,
    of_kind,
    pods,
    selects,
)

DNS = "settlement-bridge-dns"
KAFKA = "settlement-bridge-kafka"
REGISTRY = "settlement-bridge-registry"
PROVIDER = "settlement-bridge-provider"
SCRAPER = "settlement-bridge-scraper"
WAYS_OUT = {DNS, KAFKA, REGISTRY, PROVIDER}
STANDARD_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
each_build = pytest.mark.parametrize("folder", [BASE, *OVERLAYS], ids=lambda folder: folder.name)


def built(folder: Path) -> list[Resource]:
    """The base also where kustomize is not installed."""
    return RESOURCES if folder == BASE else kustomized(folder)


class Ways(NamedTuple):
    """The policies that let a pod in or out, by name; None: everything is let through."""

    into: set[str] | None
    out: set[str] | None


def ways(labels: Resource, resources: list[Resource] = RESOURCES) -> Ways:
    """Return what a pod with these labels may do.

    A pod that no policy selects for a direction may do all; otherwise what one of those policies allows.
    """
    policies = of_kind("NetworkPolicy", resources)
    selecting = {n: p for n, p in policies.items() if selects(p["spec"]["podSelector"], labels)}
    found: list[set[str] | None] = []
    for direction, rules in (("Ingress", "ingress"), ("Egress", "egress")):
        governing = {n: p for n, p in selecting.items() if direction in p["spec"]["policyTypes"]}
        found.append({n for n, p in governing.items() if p["spec"].get(rules)} if governing else None)
    return Ways(*found)


def rule(name: str, direction: str = "egress", resources: list[Resource] = RESOURCES) -> Resource:
    """The only rule of a policy; it is the one to patch."""
    [only] = of_kind("NetworkPolicy", resources)[name]["spec"][direction]
    found: Resource = only
    return found


def ports(
    name: str, direction: str = "egress", resources: list[Resource] = RESOURCES
) -> set[tuple[str, Any]]:
    """Protocol and port of each port that a policy opens."""
    return {(p["protocol"], p["port"]) for p in rule(name, direction, resources)["ports"]}


@pytest.mark.parametrize("component", ["bridge", "translations", "currencies", "shell"])
@each_build
def test_a_pod_is_let_out_to_what_it_needs_and_in_by_its_scraper(folder: Path, component: str) -> None:
    resources = built(folder)
    labels = pods(resources)[component]["metadata"]["labels"]
    serving = {"bridge", "translations", "currencies"} if folder == PRODUCTION else {"bridge"}
    assert ways(labels, resources) == Ways({SCRAPER} if component in serving else set(), WAYS_OUT)


@pytest.mark.parametrize(
    "labels", [{}, {"app.kubernetes.io/component": "bridge"}, {"app": "settlement-bridge"}]
)
def test_no_policy_meets_a_pod_of_something_else(labels: Resource) -> None:
    assert ways(labels) == Ways(None, None)


def test_without_the_other_policies_everything_is_denied() -> None:
    denying = [
        r for r in RESOURCES if r["kind"] == "NetworkPolicy" and r["metadata"]["name"] == "settlement-bridge"
    ]
    assert len(denying) == 1
    for pod in pods().values():
        assert ways(pod["metadata"]["labels"], denying) == Ways(set(), set())


@each_build
def test_the_ports_are_those_of_the_addresses(folder: Path) -> None:
    resources = built(folder)
    given: dict[str, str] = {}
    for pod in pods(resources).values():
        given |= environment(pod, resources)
    brokers = {
        int(server.rpartition(":")[2]) for server in given["BRIDGE_KAFKA__BOOTSTRAP_SERVERS"].split(",")
    }
    assert ports(KAFKA, resources=resources) == {("TCP", port) for port in brokers}
    assert ports(REGISTRY, resources=resources) == {("TCP", _port(given["BRIDGE_REGISTRY__URL"]))}
    provider = {_port(given[f"BRIDGE_{section}__BASE_URL"]) for section in ("FEED", "API")}
    if folder.name == "dev":
        assert rule(PROVIDER, resources=resources) == {}, "where it may be anywhere, every way out is open"
    else:
        assert ports(PROVIDER, resources=resources) == {("TCP", port) for port in provider}
    assert ports(DNS, resources=resources) == {("UDP", 53), ("TCP", 53)}


def _port(url: str) -> int:
    """The port that a client connects to."""
    parts = urlsplit(url)
    return parts.port or STANDARD_PORTS[parts.scheme]


def test_kafka_is_the_cluster_that_the_topics_name() -> None:
    [peer] = rule(KAFKA)["to"]
    [labels] = kustomization(K8S / "topics")["labels"]
    cluster = labels["pairs"]["strimzi.io/cluster"]
    assert peer == {
        "namespaceSelector": {},
        "podSelector": {
            "matchLabels": {"strimzi.io/cluster": cluster, "strimzi.io/name": f"{cluster}-kafka"}
        },
    }


@pytest.mark.parametrize(
    ("address", "reached"),
    [
        ("198.51.100.7", True),
        ("2001:db8::7", False),
        ("64:ff9b::a00:1", False),
        ("198.18.0.1", False),
        ("240.0.0.1", False),
        ("10.96.0.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("172.20.0.1", False),
        ("192.168.1.1", False),
        ("fd00:ec2::254", False),
        ("fe80::1", False),
    ],
)
def test_the_provider_is_outside(address: str, reached: bool) -> None:
    host = ip_address(address)
    blocks = [peer["ipBlock"] for peer in rule(PROVIDER)["to"]]
    assert reached == any(
        host in ip_network(block["cidr"]) and not any(host in ip_network(net) for net in block["except"])
        for block in blocks
    )


@each_build
def test_the_scraper_reaches_what_serves(folder: Path) -> None:
    resources = built(folder)
    [monitor] = of_kind("PodMonitor", build(K8S / "observe").resources).values()
    [scraped] = {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
    assert ports(SCRAPER, "ingress", resources) == {("TCP", scraped)}
    for pod in pods(resources).values():
        labels = pod["metadata"]["labels"]
        assert ways(labels, resources).into == ({SCRAPER} if ports_of(pod) else set())
        if ports_of(pod):
            assert ports_of(pod) == {scraped}
            assert selects(monitor["spec"]["selector"], labels)


def ports_of(pod: Resource) -> set[str]:
    """The names of the ports of a pod."""
    return {port["name"] for container in containers(pod) for port in container.get("ports", ())}


@pytest.mark.parametrize("name", [DNS, KAFKA, REGISTRY, SCRAPER])
def test_a_way_within_the_cluster_leads_to_pods_of_one_kind(name: str) -> None:
    policy = of_kind("NetworkPolicy")[name]["spec"]
    [[peer]] = [r.get("to") or r["from"] for r in policy.get("egress") or policy["ingress"]]
    assert peer["podSelector"]["matchLabels"]
    assert bool(peer["namespaceSelector"]) == (name in (DNS, SCRAPER))
