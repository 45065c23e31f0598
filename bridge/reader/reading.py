"""Reads a topic as typed records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from threading import Event

from bridge.config import Settings, load
from bridge.errors import SchemaError
from bridge.reader.decoding import MessageDecoder, T_co, Topic
from bridge.reader.source import Start, Until, polls
from bridge.records.message import SkippedRecords
from bridge.records.place import Removed
from bridge.registry import Registry


def read(
    topic: Topic[T_co],
    *,
    from_: Start = "start",
    until: Until = "end",
    follow: bool = False,
    stop: Event | None = None,
    settings: Settings | None = None,
) -> Iterator[T_co]:
    """Yield the records of a topic, `read_committed`; the records of a key come in order.

    Ends at `until`, or never if it is to `follow`: then it waits for new records, and also follows added
    partitions and a recreated topic. Ends within a fraction of a second after another thread has set `stop`.
    Skips tombstones, and records that no bridge has written, whose number is logged. Without `settings`, they
    come from the environment, as those of the commands do.

    Raises SettingsError for a start or an end that the topic does not have, TopologyError when the topic or a
    right is missing, KafkaUnavailable when no broker answers: each is a `bridge.errors.BridgeError`.
    """
    found = changes(topic, from_=from_, until=until, follow=follow, stop=stop, settings=settings)
    return (record for record in found if not isinstance(record, Removed))


def changes(
    topic: Topic[T_co],
    *,
    from_: Start = "start",
    until: Until = "end",
    follow: bool = False,
    stop: Event | None = None,
    settings: Settings | None = None,
) -> Iterator[T_co | Removed]:
    """Yield as `read`, but tombstones too, as `Removed`."""
    settings = settings or load(None)
    foreign = SkippedRecords(follows=follow)
    with Registry(settings.registry) as registry:
        decoder = MessageDecoder(topic, registry)
        with closing(polls(settings, topic.name, from_, None if follow else until, stop)) as found:
            try:
                for message in chain.from_iterable(found):
                    try:
                        record = decoder.decode(message)
                    except SchemaError as error:
                        foreign.add(error)
                        continue
                    if stop is not None and stop.is_set():
                        return
                    yield record
            finally:
                foreign.log()
