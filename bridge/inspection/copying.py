"""Copies settled bets to another topic: each once, however often the copy is interrupted.

Records keep key, value, headers, timestamp and partition. Each transaction commits the offsets of what it
has copied for a group of the target's own, so a repeated command goes on after them. A target that has
anything but this copy is refused: bets would be there twice, or older versions after newer ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from bridge import clock
from bridge.config import Settings
from bridge.errors import BridgeError, SettingsError, SinkBroken, TopologyError
from bridge.inspection.replay import Replay, Window
from bridge.kafka import admin, clients
from bridge.kafka.blocking import checked
from bridge.kafka.errors import ErrorAction, KafkaUnavailable, cause, coordinated, denied, lacks_right, triage
from bridge.kafka.pace import KafkaPace
from bridge.records import topics

T = TypeVar("T")
BATCH: Final = 5_000
"""Records in a transaction."""
BATCH_BYTES: Final = 8 * 1024 * 1024
CALL_SECONDS: Final = 60.0


class TopicCopy:
    """A copy to one topic. `wanted` are the options that it is made with: others are another copy.

    With `create`, makes the topic if it is missing, as that of bets is declared. Raises SettingsError for a
    target that is the bridge's own or has records of another copy, TopologyError for one that is missing or
    has another number of partitions, and as `run`.
    """

    def __init__(
        self, settings: Settings, target: str, wanted: Mapping[str, Any], window: Window, *, create: bool
    ) -> None:
        declared = topics.declare(settings)
        source = declared.bets.name
        if target in {topic.name for topic in declared.all()}:
            raise SettingsError(f"--to-topic {target}: this is a topic of the bridge itself; choose another")
        client = admin.require_topic(settings.kafka, source)
        count = admin.partition_count(client, source)
        if is_new := admin.topic_id(client, target) is None:
            if not create:
                raise TopologyError(f"--to-topic {target}: there is no such topic. Create it with --create.")
            topic = replace(declared.bets, name=target, partitions=count)
            made = topics.Change(topic, topics.Action.CREATE, "", topic.config)
            topics.apply(client, [made], replication_factor=settings.topics.replication_factor)
        if (found := admin.partition_count(client, target)) != count:
            raise TopologyError(
                f"--to-topic {target}: has {found} partitions, {source} has {count}: keys would "
                "move to other partitions"
            )
        # A target that was made anew has another one.
        self.group = f"{settings.topics.prefix}.replay.{target}.{admin.topic_id(client, target)}"
        self._target, self._source = target, source
        self._consumer = clients.reader(settings.kafka, name=self.group)
        self._pace = KafkaPace(BATCH_BYTES)
        self._producer: Producer = clients.producer(
            settings.kafka,
            transactional_id=self.group,
            max_record_bytes=topics.max_record_bytes(settings.feed),
            pace=self._pace,
        )
        places = [TopicPartition(source, partition) for partition in range(count)]
        options = orjson.dumps(wanted, default=str, option=orjson.OPT_SORT_KEYS)
        self._note: dict[str, Any] = {"wanted": hashlib.sha256(options).hexdigest(), "window": [*window]}
        # Not every broker knows yet that it leads what was just made.
        is_empty = is_new or not any(admin.end_offsets(client, target, count))
        try:
            # First: a refused command must not fence a copy that runs. Not held up by what was left open.
            with closing(clients.reader(settings.kafka, name=self.group, committed=False)) as reader:
                self._claimed(reader, places, is_empty)
            self._call(partial(checked, self._producer.init_transactions, CALL_SECONDS))  # which ends that
            self.offsets = self._claimed(self._consumer, places, is_empty)
            """Partition → offset to go on from; None if nothing was copied yet."""
        except BaseException:
            self._consumer.close()
            raise
        self.window = Window(*self._note["window"])
        """The interval of the first attempt: kept, whatever an age means now."""
        self.copied = 0
        """Records that this attempt has copied."""

    def _claimed(
        self, reader: Consumer, places: list[TopicPartition], is_empty: bool
    ) -> dict[int, int] | None:
        """Return the offsets of the copy that the target has, and take over its note; None without one.

        Raises SettingsError if it is another copy, or the target has records of none.
        """
        committed = self._call(partial(_committed, reader, places))
        if failed := next((place.error for place in committed if place.error is not None), None):
            raise self._failed(failed)
        done = [place for place in committed if place.offset >= 0]
        refusal = "" if is_empty else "has records, and no copy that could go on"
        if done:
            note = orjson.loads(done[0].metadata or "{}")
            refusal = "has another copy, made with other options or before a gap was declared (--gap)"
            if note.get("wanted") == self._note["wanted"]:
                refusal, self._note = "", note
        if refusal:
            raise SettingsError(
                f"--to-topic {self._target}: {refusal}: bets would be doubled, or older versions come after "
                "newer ones. Repeat the options of the first copy, without --to if it is to follow the "
                "topic, or copy to a new topic (--create)."
            )
        return {place.partition: place.offset for place in done} or None

    def close(self) -> None:
        """End the clients."""
        self._consumer.close()

    def run(self, replay: Replay) -> None:
        """Copy all messages.

        Each transaction commits the offsets of all partitions, since Kafka forgets that of one that is not
        committed for `offsets.retention.minutes` (7 days). Raises SinkBroken or TopologyError when Kafka
        refuses, KafkaUnavailable when it does not answer: what was committed stays, and the next run goes on
        after it.
        """
        # A transaction is opened when all of it is at hand: the next match may be minutes away.
        batch: list[Message] = []
        size = 0

        def save() -> None:
            nonlocal size
            began = clock.now().monotonic
            self._write(batch, replay.offsets)
            now = clock.now().monotonic
            self._pace.took(size, now - began, now)
            self.copied += len(batch)
            batch.clear()
            size = 0

        save()  # before a record is there: what an attempt leaves behind is known as its own
        replay.save = save
        for message in replay.messages():
            batch.append(message)
            size += len(message)
            if len(batch) == BATCH or size >= self._pace.bytes:
                save()
        save()

    def _produce(self, message: Message) -> None:
        while True:
            try:
                self._producer.produce(
                    self._target,
                    message.value(),
                    message.key(),
                    message.partition() or 0,
                    timestamp=message.timestamp()[1],
                    headers=message.headers() or [],
                )
                return
            except BufferError:
                checked(self._producer.poll, 0.05)

    def _write(self, batch: Sequence[Message], offsets: Mapping[int, int]) -> None:
        note = orjson.dumps(self._note).decode()
        places = [
            TopicPartition(self._source, partition, offset, metadata=note)
            for partition, offset in offsets.items()
        ]

        def write() -> None:
            self._producer.begin_transaction()
            for message in batch:
                self._produce(message)
            group = self._consumer.consumer_group_metadata()
            checked(self._producer.send_offsets_to_transaction, places, group, CALL_SECONDS)
            checked(self._producer.commit_transaction, CALL_SECONDS)

        self._call(write)

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except KafkaException as exception:
            raise self._failed(exception.args[0]) from None

    def _failed(self, error: KafkaError) -> BridgeError:
        """Return the error of a call, with what is to be done about it."""
        error = cause(self._producer, error)
        text = f"{self._target} could not be written as {self.group}: "
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return TopologyError(text + denied(error, f"Read the group {self.group}"))
        if lacks_right(error):
            needed = f"Write the topic {self._target}", f"Write the transactional id {self.group}"
            return SinkBroken(text + denied(error, *needed))
        fenced = error.fatal() or error.code() in (KafkaError._FENCED, KafkaError._FATAL)
        text += "another process has started a copy to it and taken over" if fenced else error.str()
        text += ". What was copied stays: repeat the command to resume."
        if fenced or triage(error) is ErrorAction.REFUSED:
            return SinkBroken(text)
        return KafkaUnavailable(text)


@coordinated
def _committed(reader: Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
    """Return the offsets of the group."""
    return reader.committed(places, timeout=admin.USER_SECONDS)
