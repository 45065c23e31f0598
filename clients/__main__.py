"""Lets each client read odd bets on a real Kafka, and writes what was seen into docs/reading.md.

Each line of a program that ends with `without: …` is left out once, to see what comes without it. Ends with
exit 1 where a row of the table changes: look at the difference, and commit it if it is right.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bridge.errors import BridgeError
from bridge.kafka.partitioner import partition_of
from bridge_sandbox import cluster as dev
from clients.odd import Bet, settings_of, write
from clients.outcome import Outcome
from clients.programs import CLIENTS, Client, Setting, build, run, started
from clients.table import KEYS, PAGE, Findings, rows, with_rows
from examples.stack import say

CODECS = ("gzip", "snappy", "lz4", "zstd")
PREFIX = "settlement"
PARTITIONS = 6
COMMIT_SECONDS = 6.0
"""After the last bet, until a client has committed its offset: by default every five seconds."""


class Runs:
    """The runs of clients on a cluster that has the bets."""

    def __init__(self, cluster: dev.Cluster, directory: Path) -> None:
        self._servers: Any = {"bootstrap.servers": cluster.bootstrap_servers}
        self._admin = AdminClient(self._servers)
        self._environment = {
            "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
            "BRIDGE_REGISTRY__URL": cluster.registry_url,
        }
        self._directory, self._number = directory, 0
        self.truth: list[tuple[str, Bet | None]] = []
        for prefix, codec in ((PREFIX, "none"), *zip(CODECS, CODECS, strict=True)):
            self.truth = write(settings_of(cluster, prefix, codec))

    def findings(self, client: Client) -> Findings:
        """Return what is seen of a client. Raises BridgeError where it cannot be built."""
        found = Findings(client, self._read(client, group=client.name, seconds=COMMIT_SECONDS))
        found.offset = self._offset(client.name)
        for setting in client.settings:
            if setting.reads:
                found.without.append((setting, self._read(client, without=setting)))
        if '"keys"' in client.source:
            found.keys = [(None, self._placed(client, None))]
            found.keys += [(s, self._placed(client, s)) for s in client.settings if not s.reads]
        found.codecs = {codec: self._read(client, prefix=codec) for codec in CODECS}
        return found

    def _read(
        self,
        client: Client,
        *,
        without: Setting | None = None,
        prefix: str = PREFIX,
        group: str = "",
        seconds: float = 0.5,
    ) -> Outcome:
        self._number += 1
        source = client.without(without and without.line).replace(f'"{PREFIX}.bets"', f'"{prefix}.bets"')
        command = build(client, source.replace('"payouts"', f'"{group or f"run-{self._number}"}"'))
        outcome = run(
            command, self._environment | {"BRIDGE_TOPICS__PREFIX": prefix}, self._directory, seconds
        )
        say(f"{client.name} {prefix} {without.code if without else ''}: {len(outcome.rows)} {outcome.error}")
        return outcome

    def _offset(self, group: str) -> str:
        """Return how far a group has come, of the end of the bets."""
        place = TopicPartition(f"{PREFIX}.bets", 0)
        consumer = Consumer(self._servers | {"group.id": "ends"})
        end = consumer.get_watermark_offsets(place, timeout=10)[1]
        consumer.close()
        asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [place])])
        [found] = asked[group].result(30).topic_partitions or []
        if found.offset < 0:
            return "none"
        return "the end" if found.offset == end else f"{end - found.offset} before the end"

    def _placed(self, client: Client, without: Setting | None) -> int:
        """Return how many keys a client's producer puts where Java's does."""
        self._number += 1
        topic, keys = f"keys-{self._number}", [f"bet-{number}" for number in range(KEYS)]
        [created] = self._admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
        created.result(30)
        source = client.without(without and without.line).replace('"keys"', f'"{topic}"')
        with (
            (self._directory / "stderr").open("wb") as log,
            started([*build(client, source), *keys], self._environment, self._directory, log) as process,
        ):
            try:
                code = process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise BridgeError("its producer does not end") from None
            if code:
                raise BridgeError(f"{client.name}: {(self._directory / 'stderr').read_text('utf-8')}")
        consumer = Consumer(self._servers | {"group.id": topic, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        placed = dict[bytes, int]()
        deadline = time.monotonic() + 30
        while len(placed) < KEYS and time.monotonic() < deadline:
            placed |= {m.key() or b"": m.partition() or 0 for m in consumer.consume(KEYS, 0.5)}
        consumer.close()
        if len(placed) < KEYS:
            raise BridgeError(f"{client.name} has produced {len(placed)} of {KEYS} keys")
        return sum(partition_of(key, PARTITIONS) == partition for key, partition in placed.items())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m clients", description="Let clients read odd bets.")
    parser.add_argument("client", nargs="*", help="a part of its path; all by default")
    wanted = parser.parse_args().client
    clients = [Client(path) for path in CLIENTS if not wanted or any(part in path for part in wanted)]
    changed = 0
    try:
        with tempfile.TemporaryDirectory(prefix="settlement-bridge-clients-") as name:
            directory = Path(name)
            with dev.start(directory / "data", kafka_port=0, registry_port=0, progress=say) as cluster:
                runs = Runs(cluster, directory)
                for client in clients:
                    changed += seen(client, runs)
    except BridgeError as error:
        sys.exit(f"error: {error}")
    sys.exit(f"error: {changed} of {len(clients)} rows have changed, or could not be seen" if changed else 0)


def seen(client: Client, runs: Runs) -> bool:
    """Write the row of a client. Returns whether it has changed, or the client could not be run."""
    try:
        row = runs.findings(client).row(runs.truth)
    except BridgeError as error:
        say(f"error: {client.path}: {error}")
        return True
    return replaced(client, row)


def replaced(client: Client, row: str) -> bool:
    """Write a client's row into the page. Returns whether it has changed."""
    page = PAGE.read_text("utf-8")
    if (old := rows(page).get(client.path)) == row:
        return False
    say(f"changed: {client.path}\n- {old or ''}+ {row}")
    PAGE.write_text(with_rows(page, {client.path: row}, CLIENTS), "utf-8")
    return True


if __name__ == "__main__":
    main()
