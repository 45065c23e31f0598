"""One embedded Kafka and registry for the whole run, started by the first test that needs it."""

from __future__ import annotations

import gc
import itertools
import re
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bridge import masking
from bridge_sandbox import cluster as dev
from tests.harness import IN_VAIN, Bridge, Place
from tests.processes import send
from tests.tls import Authority

# A busy machine fails no test.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_numbers = itertools.count(1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests, and never look through what that makes for garbage: it took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def secrets_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget secrets after each test: one test's secret may be an ordinary word in another."""
    monkeypatch.setattr(masking, "_secrets", {})
    monkeypatch.setattr(masking, "_mask", None)
    monkeypatch.setattr(masking, "_rename", str)


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables that name a proxy: the environment of the tests may have some."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dev.Cluster]:
    """A broker and a registry for this run, which end with it."""
    with dev.start(tmp_path_factory.mktemp("cluster"), kafka_port=0, registry_port=0) as running:
        yield running
        running.close(grace=0)  # nobody reads its thousands of partitions again


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only certificate that clients of a test trust: each that is made reads all of them, in 50 ms."""
    return Authority(tmp_path_factory.mktemp("authority")).certificate


@pytest.fixture
def one_authority(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients that are made from now on trust it."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))


@pytest.fixture
def place(cluster: dev.Cluster, one_authority: None, tmp_path: Path) -> Iterator[Place]:
    """Topics of this test on the shared cluster, and the bridges that it starts."""
    bridges: list[Bridge] = []
    yield Place(cluster, f"t{next(_numbers)}", tmp_path, bridges)
    for bridge in bridges:
        bridge.kill()
    for name, server in cluster.servers.items():  # a failed test must not fail those behind it
        if server.is_alive():
            send(server, signal.SIGCONT)
        else:
            cluster.restart(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A wait that Kafka itself has made vain, by a fault of its own, is reported as an expected failure.

    Nothing but a wait: what is lost, doubled or wrong fails, whatever the broker did.
    """
    report = yield
    fixtures = getattr(item, "funcargs", {})
    place = fixtures.get("place")
    waited = call.when == "call" and call.excinfo is not None and str(call.excinfo.value).startswith(IN_VAIN)
    if waited and isinstance(place, Place) and place.markers_skipped():
        report.outcome, report.wasxfail = "skipped", "a broker that stopped has taken partitions for deleted"
    elif report.failed and (directory := fixtures.get("tmp_path")):
        logs = [*directory.parent.glob("cluster0/*.log"), *directory.glob("*/*.log")]
        report.sections.extend((str(log), complaints(log)) for log in logs)
    return report


def complaints(log: Path) -> str:
    """A server's last errors and warnings, each with the next line, where an exception names itself."""
    lines = log.read_text(errors="replace").splitlines()
    found = [n for n, line in enumerate(lines) if re.search(r"\b(ERROR|WARN)\b", line)]
    return "\n".join(line for n in found[-20:] for line in lines[n : n + 2])
