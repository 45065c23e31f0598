"""Compiles and runs the Kafka Streams application, and prints the rows that it writes to its topic.

On stdout: two lines for each row on a terminal, a line of JSON with key and value elsewhere. A value of null
takes a row back. `state` in the working directory has the classes, the log and what Kafka Streams keeps.
Settings, by environment:

    BRIDGE_KAFKA__BOOTSTRAP_SERVERS   127.0.0.1:9092 by default
    BRIDGE_REGISTRY__URL              http://127.0.0.1:8080/apis/ccompat/v7
    BRIDGE_TOPICS__PREFIX             settlement
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]  # this file is run by its path

import display  # noqa: E402

from bridge.errors import BridgeError  # noqa: E402
from bridge_sandbox.cluster.downloads import class_path  # noqa: E402
from bridge_sandbox.cluster.process import Server  # noqa: E402
from examples.jars import compiled, java, joined, say  # noqa: E402

BOOTSTRAP_SERVERS = os.environ.get("BRIDGE_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:9092")
PREFIX = os.environ.get("BRIDGE_TOPICS__PREFIX", "settlement")
BETS, ROWS = f"{PREFIX}.bets", f"{PREFIX}.bets-by-selection"
APPLICATION = ROWS
"""Id of the application, which is its group, too."""
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED")
SOURCES = HERE / "src"


def libraries(*, tests: bool = False) -> list[str]:
    """Return the dependencies in `pom.xml` as `group:name:version`, with or without those of scope test."""
    found = [
        {part.tag: part.text for part in dependency}
        for dependency in ElementTree.parse(HERE / "pom.xml").iter("dependency")  # noqa: S314  # our own file
    ]
    return [
        f"{one['groupId']}:{one['artifactId']}:{one['version']}"
        for one in found
        if tests or one.get("scope") != "test"
    ]


def application(directory: Path, language: str) -> Server:
    """Compile the application; returns it, to be started. Raises BridgeError."""
    sources = sorted((SOURCES / "main" / "java").rglob("*.java"))
    classes = compiled(sources, class_path(say, *libraries()), directory / "classes", say)
    command = [java(), *JVM, "-cp", joined((SOURCES / "main" / "resources", *classes))]
    settings = {name: value for name, value in os.environ.items() if name.startswith("BRIDGE_")}
    return Server(
        "kafka-streams",
        [*command, "settlement.BetsBySelection", language],
        directory.parent,
        directory / "kafka-streams.log",
        settings,
    )


def partitions(topic: str) -> list[int]:
    """Return the partitions of a topic, none where it is not there."""
    topics = AdminClient({"bootstrap.servers": BOOTSTRAP_SERVERS}).list_topics(timeout=10).topics
    return list(topics[topic].partitions) if topic in topics else []


def records(topic: str, beside: Server | None = None) -> Iterator[Message]:
    """Yield every record of a topic: to its end, or on and on beside the application.

    Raises BridgeError where that ends.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": BOOTSTRAP_SERVERS,
            "group.id": f"{APPLICATION}.shown",  # asked for, and joined by nobody
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    open_ = set(partitions(topic))
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in open_])
    try:
        while open_:
            if beside is not None:
                check(beside)
            for message in consumer.consume(1000, timeout=0.1):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_ -= {message.partition()} if beside is None else set()
                elif not error.retriable():
                    raise KafkaException(error)
    finally:
        consumer.close()


def check(server: Server) -> None:
    """Raise BridgeError if the application has ended."""
    if not server.is_alive():
        raise BridgeError(f"the application has ended. The end of its log:\n{server.log_tail()}")


def wait(server: Server, condition: Callable[[], object]) -> None:
    """Return when something has come about. Raises BridgeError where the application ends before."""
    while not condition():
        check(server)
        time.sleep(0.2)


def wait_until_processed(server: Server) -> None:
    """Return when the application has committed all bets that are in the topic now. Raises BridgeError."""
    ends = {bet.partition(): bet.offset() + 1 for bet in records(BETS)}
    wanted = [TopicPartition(BETS, partition) for partition in ends]
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP_SERVERS, "group.id": APPLICATION})
    try:
        wait(
            server,
            lambda: all(found.offset >= ends[found.partition] for found in consumer.committed(wanted)),
        )
    finally:
        consumer.close()


def show(key: str, row: dict[str, Any] | None) -> None:
    """Print a row; None takes it back."""
    if sys.stdout.isatty():
        print(display.lines(key, row, shutil.get_terminal_size().columns), flush=True)
    else:
        print(json.dumps({"key": key, "value": row}, ensure_ascii=False), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Print a row for each selection of each settled bet.")
    parser.add_argument("--language", default="en", help="of the names; by default en")
    parser.add_argument(
        "--until-end", action="store_true", help="end when the bets that are there have been processed"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the application, as Ctrl-C does
    server = application(Path("state").resolve(), options.language)
    server.start()
    try:
        if options.until_end:
            wait_until_processed(server)
            server.stop()
        else:
            wait(server, lambda: partitions(ROWS))
        for record in records(ROWS, None if options.until_end else server):
            show(record.key().decode(), record.value() and json.loads(record.value()))
    finally:
        server.stop()


if __name__ == "__main__":
    try:
        with suppress(KeyboardInterrupt):
            main()
    except BridgeError as error:
        sys.exit(f"error: {error}")
