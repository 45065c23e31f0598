"""Settled bets with the names of what was bet on, in every language.

On stdout: three lines for each bet on a terminal, a line of JSON elsewhere.

A consumer of the topics as any other: of the bridge it needs the topics and the schema registry, and none
of its code. Settings, by environment:

    BRIDGE_KAFKA__BOOTSTRAP_SERVERS   127.0.0.1:9092 by default
    BRIDGE_REGISTRY__URL              http://127.0.0.1:8080/apis/ccompat/v7
    BRIDGE_TOPICS__PREFIX             settlement
    Quix__State__Dir                  state: where Quix Streams keeps what it remembers of each bet
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import display
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from fastavro.read import LOGICAL_READERS
from quixstreams import Application, State
from quixstreams.dataframe.joins.lookups.base import BaseField, BaseLookup
from quixstreams.models.serializers.avro import AvroDeserializer
from quixstreams.models.serializers.schema_registry import SchemaRegistryClientConfig

BOOTSTRAP_SERVERS = os.environ.get("BRIDGE_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:9092")
REGISTRY = os.environ.get("BRIDGE_REGISTRY__URL", "http://127.0.0.1:8080/apis/ccompat/v7")
PREFIX = os.environ.get("BRIDGE_TOPICS__PREFIX", "settlement")
BETS, TRANSLATIONS = f"{PREFIX}.bets", f"{PREFIX}.translations"

# A date-time of the feed may lie before the year 1, which Python's datetime does not know: such a record
# could not be read at all. So date-times stay what they are in Avro, integers of microseconds.
LOGICAL_READERS["long-timestamp-micros"] = lambda micros, *_: micros


@dataclass(frozen=True)
class Name(BaseField):
    """Which translation is a name of an item: the key of its record, by the item's own fields."""

    key: str

    def of(self, item: Mapping[str, Any]) -> str:
        """That key; empty where the item has no event, or no market."""
        try:
            return self.key.format_map(item)
        except TypeError:
            return ""


NAMES = {
    "event": Name("event:{event[id]}"),
    "sport": Name("sport:{sportId}"),
    "league": Name("league:{competitionId}"),
    "region": Name("region:{countryId}"),
    "market": Name("market:{event[id]}:{market[id]}"),
    "selection": Name("selection:{selectionId}"),
}
OF_PARTS = ("market", "selection")
"""What a part of a bet builder has of its own: event, sport, league and region are those of its item."""


class Translations(BaseLookup[Name]):
    """The translations by key, as the compacted topic has them: the last record of each.

    Read to their end before the first bet, and followed from then on. Kept as the bytes that they came in,
    which take less memory, and decoded for each bet.
    """

    def __init__(self, consumer: Consumer, partitions: list[int], decode: AvroDeserializer) -> None:
        self._consumer, self._decode = consumer, decode
        self._records: dict[str, bytes] = {}
        self._unread = set(partitions)
        consumer.assign([TopicPartition(TRANSLATIONS, p, OFFSET_BEGINNING) for p in partitions])
        while self._unread:
            self._follow(seconds=0.2)

    def join(self, fields: Mapping[str, Name], on: str, value: dict[str, Any], *_: Any) -> None:
        """Add `names` to each item of a bet: name → language → text, None for what has no translation."""
        self._follow(seconds=0)
        parts = {name: fields[name] for name in OF_PARTS}
        for item in value["selections"] or ():
            item["names"] = {name: self._texts(field.of(item)) for name, field in fields.items()}
            for part in item["betBuilderItems"] or ():
                part["names"] = {
                    name: self._texts(field.of({**item, **part})) for name, field in parts.items()
                }

    def _texts(self, key: str) -> dict[str, str] | None:
        record = self._records.get(key)
        return None if record is None else self._decode(record, ctx=None)["translations"]

    def _follow(self, seconds: float) -> None:
        """Take in what is there, or what comes within so many seconds."""
        for message in self._consumer.consume(1000, seconds):
            error = message.error()
            if error is None and message.value() is not None:
                self._records[message.key().decode()] = message.value()
            elif error is None:  # a tombstone: there is no such thing any more
                self._records.pop(message.key().decode(), None)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._unread.discard(message.partition())
            elif not error.retriable():
                raise KafkaException(error)


def tell_correction(bet: dict[str, Any], state: State) -> None:
    """Add `corrects`: what was said of the bet the last time, None the first time."""
    bet["corrects"] = state.get("said")
    state.set("said", {name: bet[name] for name in ("settlementVersion", "betSettlement", "payout")})


def unread(group: str, partitions: list[int]) -> int:
    """Return the number of bets in the topic that the group has not read."""
    consumer = Consumer(
        {
            "bootstrap.servers": BOOTSTRAP_SERVERS,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign(consumer.committed([TopicPartition(BETS, p) for p in partitions], timeout=10))
    found, open_ = 0, set(partitions)
    while open_:
        for message in consumer.consume(1000, timeout=0.2):
            error = message.error()
            if error is None:
                found += message.value() is not None
            elif error.code() == KafkaError._PARTITION_EOF:
                open_.discard(message.partition())
            elif not error.retriable():
                raise KafkaException(error)
    consumer.close()
    return found


def main(until_end: bool) -> None:
    """Join until Ctrl-C, or until the bets that are there have been joined."""
    group, whole = f"{PREFIX}.quix-join", {"isolation.level": "read_committed"}
    # The client asks for a group's name; nobody joins this one, since everybody needs all translations.
    names = {
        "bootstrap.servers": BOOTSTRAP_SERVERS,
        "group.id": f"{group}.names",
        "enable.partition.eof": True,
    }
    consumer = Consumer({**names, **whole, "enable.auto.commit": False})
    topics = consumer.list_topics(timeout=10).topics
    if missing := {BETS, TRANSLATIONS} - topics.keys():
        # Quix Streams would make them, with other settings than the bridge needs.
        sys.exit(f"error: there is no topic {' and no '.join(sorted(missing))}. Run `bridge topics apply`.")
    avro = AvroDeserializer(schema_registry_client_config=SchemaRegistryClientConfig(url=REGISTRY))
    translations = Translations(consumer, list(topics[TRANSLATIONS].partitions), avro)

    count = unread(group, list(topics[BETS].partitions)) if until_end else 0
    if until_end and not count:
        return
    app = Application(
        BOOTSTRAP_SERVERS,
        consumer_group=group,
        auto_offset_reset="earliest",
        consumer_extra_config=whole,
        loglevel="WARNING",
    )
    bets = app.dataframe(app.topic(BETS, key_deserializer="str", value_deserializer=avro))
    bets = bets.filter(lambda bet: bet is not None)  # a tombstone
    bets = bets.join_lookup(translations, NAMES)
    bets = bets.update(tell_correction, stateful=True)
    numbers = itertools.count(1)

    def show(bet: dict[str, Any]) -> None:
        if sys.stdout.isatty():
            text = display.lines(bet, next(numbers), shutil.get_terminal_size().columns)
        else:
            text = json.dumps(bet, ensure_ascii=False)
        print(text, flush=True)

    bets.update(show)
    app.run(count=count, collect=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print settled bets with their names in every language.")
    parser.add_argument(
        "--until-end", action="store_true", help="end when the bets that are there have been printed"
    )
    main(parser.parse_args().until_end)
