"""Catching up while Kafka takes only so many bytes a second: the share of a produce quota that is used."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from functools import partial

from benchmarks.arena import Arena, Lane
from benchmarks.contenders import BRIDGE, Contender, other_build
from benchmarks.process import PATIENCE, BenchmarkFailed, running
from benchmarks.rounds import Line, Options, Result, line, measured
from bridge_sandbox.cluster import Cluster

QUOTAS = (50, 100, 500)
"""Kilobytes a second, of 1,000 bytes."""
SECONDS = 60
WARM_UP_SECONDS = 20.0
"""A quota is an average of eleven seconds: what Kafka takes at once in the beginning does not count."""
CONFIGS_TOOL = "kafka.admin.ConfigCommand"
"""Of the broker's jar up to Kafka 4.3; from 4.4 `org.apache.kafka.tools.ConfigCommand`, in `kafka-tools`."""
_MESSAGES = 1_000_000
"""More than a quota lets through."""


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each quota and build: this one, and the other, if there is one."""
    contenders = {contender.name: contender for contender in (BRIDGE, *other_build())}
    seconds = options.seconds or SECONDS

    def once(quota: int, name: str) -> Result:
        with arena.lane() as lane:
            return _measure(lane, contenders[name], quota, seconds)

    for quota in options.rates or QUOTAS:
        found = measured(f"quota of {quota} kB/s", list(contenders), options.rounds, partial(once, quota))
        for name, results in found.items():
            yield line("quota", results, contender=name, kbytes_per_second=quota, seconds=seconds)


def _measure(lane: Lane, contender: Contender, kbytes: int, seconds: int) -> Result:
    """Return the share of the quota that became visible as bets, keys and values alone."""
    limit(lane.arena.cluster, lane.prefix, kbytes * 1000)
    with lane.feed("--messages", _MESSAGES) as (feed, url):
        settings = lane.environment(FEED__BASE_URL=url, KAFKA__CLIENT_ID=lane.prefix)
        environment = {**settings, **contender.environment}
        with running(contender.name, contender.command, environment, lane.directory) as program:
            program.wait_until(lambda: feed.said("first") is not None, "has not begun")
            time.sleep(WARM_UP_SECONDS)
            began, before = time.monotonic(), _visible(lane)
            time.sleep(seconds)
            took, after = time.monotonic() - began, _visible(lane)
            if not program.is_alive():
                raise BenchmarkFailed(f"{program.name} has ended\n{program.log_tail()}")
    return {"share": (after - before) / took / (kbytes * 1000)}


def _visible(lane: Lane) -> int:
    return sum(len(key) + len(value) for key, value in lane.arena.read(lane.bets))


def limit(cluster: Cluster, client_id: str, bytes_per_second: int | None) -> None:
    """Give clients with this id a produce quota on each broker, or take it away, with Kafka's own tool.

    confluent-kafka has no call for it.
    """
    java, *options = next(server.command for name, server in cluster.servers.items() if name[:5] == "kafka")
    class_path = options[options.index("-cp") + 1]
    rate = "producer_byte_rate"
    change = ["--add-config", f"{rate}={bytes_per_second}"] if bytes_per_second else ["--delete-config", rate]
    tool = [java, "-XX:TieredStopAtLevel=1", "-cp", class_path, CONFIGS_TOOL]
    whose = ["--entity-type", "clients", "--entity-name", client_id]
    subprocess.run(
        [*tool, "--bootstrap-server", cluster.bootstrap_servers, "--alter", *change, *whose],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
