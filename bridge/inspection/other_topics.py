"""Writes what a topic of names, gaps or snapshots has to a file or to stdout: all of it, as it is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias

import orjson
from confluent_kafka import Message

from bridge.avro.schemas import SCHEMAS, load
from bridge.config import Settings
from bridge.errors import BridgeError, SchemaError
from bridge.inspection.export import check_target, close, locked, refuse_existing, synced
from bridge.inspection.files import AvroSink, ParquetSink
from bridge.kafka import admin
from bridge.kafka.reader import IN_VAIN_SECONDS, TopicScan
from bridge.reader.batches import RowBatch
from bridge.records.message import SkippedRecords, at
from bridge.registry import Registry

Name: TypeAlias = Literal["translations", "currencies", "gaps", "snapshots"]
Form: TypeAlias = Literal["json", "avro", "parquet"]
AT_ONCE: Final = 1_000
"""Records of a block, or of lines that are written together."""


def export_topic(settings: Settings, name: Name, form: Form, output: Path | None, out: BinaryIO) -> int:
    """Write the records of a topic, before open transactions, to a file, or as JSON lines to `out`.

    Returns their number. Tombstones have the value null in JSON, and are left out of files for programs.
    Raises SettingsError if the file is there already or cannot be written, and as `TopicScan.read`.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    topic = f"{settings.topics.prefix}.{name}"
    admin.require_topic(settings.kafka, topic)
    if output is None:
        return _written(settings, topic, name, form, out, None)
    check_target(output)
    refuse_existing(output)
    partial = output.with_name(f"{output.name}.partial")
    file = locked(output, partial)
    try:
        file.truncate()
        count = _written(settings, topic, name, form, file, partial)
        file.flush()
        synced(partial).replace(output)
        synced(output.parent)
    except OSError as error:
        raise BridgeError(f"{output} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
        close(file)
    return count


def _written(
    settings: Settings, topic: str, name: Name, form: Form, file: BinaryIO, path: Path | None
) -> int:
    skipped, count = SkippedRecords(), 0
    with ExitStack() as stack:
        registry = stack.enter_context(Registry(settings.registry))
        schema, codec = load(SCHEMAS[name]), registry.codec(SCHEMAS[name])

        def skip(message: Message, error: SchemaError) -> None:
            skipped.add(at(message, error))

        def as_json(message: Message) -> int:
            value = message.value()
            try:
                datum = None if value is None else codec.decode(value)
            except SchemaError as error:
                skip(message, error)
                return 0
            line = {
                "topic": topic,
                "partition": message.partition(),
                "offset": message.offset(),
                "timestamp": message.timestamp()[1],
                "key": (message.key() or b"").decode("utf-8", "replace"),
                "value": datum,
            }
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            return 1

        def write(messages: Sequence[Message]) -> int:
            return sum(map(as_json, messages))

        if form == "avro":
            write = AvroSink(file, schema, codec, skip).write
        elif form == "parquet":
            assert path is not None
            write = stack.enter_context(closing(ParquetSink(path, RowBatch(schema, codec, skip)))).write
        waiting: list[Message] = []

        def take(message: Message) -> None:
            nonlocal count
            if form == "json" or message.value() is not None:
                waiting.append(message)
            if len(waiting) >= AT_ONCE:
                count += write(waiting)
                waiting.clear()

        TopicScan(topic, take, visible=True, stall_seconds=IN_VAIN_SECONDS).read(settings)
        count += write(waiting)
    skipped.log()
    return count
