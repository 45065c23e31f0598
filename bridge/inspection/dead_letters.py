"""Reads the dead letters of a feed with what has become of them; prints, selects and exports them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from confluent_kafka import Message

from bridge.config import BatchSettings, Settings
from bridge.errors import ForeignRecord, SettingsError
from bridge.formatting import format_utc
from bridge.inspection.replay import Window
from bridge.kafka import admin
from bridge.kafka.pace import KafkaPace
from bridge.kafka.reader import IN_VAIN_SECONDS, TopicScan
from bridge.records import topics
from bridge.records.dead_letter import (
    DeadLetterCause,
    DeadLetterKind,
    LetterHeaders,
    MarkHeaders,
    RedriveOutcome,
    cause_of,
)
from bridge.records.message import SkippedRecords, at, headers_of, key_of, place_of

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")

SHOWN_CHARACTERS = 2_000
"""Characters of a message that are shown to people."""
KEY_SHOWN = 12
"""Characters of a key that are shown; `show` finds a letter by fewer than all of them."""
EVER = Window(0, None)


@dataclass(slots=True)
class Letter:
    """A dead letter, without its bytes, and what has become of it. Times are Unix seconds."""

    key: str
    """SHA-256 of the message, in hex."""
    kind: DeadLetterKind
    """ERROR or OVERSIZED."""
    reason: str
    """The reason of the last try."""
    received: float
    revision: int
    size: int
    """Bytes of the message."""
    partition: int
    offset: int
    tries: int = 0
    outcome: RedriveOutcome | None = None
    """The outcome of the last try; None before the first."""
    redriven: float | None = None
    """When it was last tried."""

    @property
    def open(self) -> bool:
        """Whether it has not been redriven, or failed again."""
        return self.outcome in (None, RedriveOutcome.FAILED)

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset."""
        return self.partition, self.offset

    def merge_repeat(self, found: LetterHeaders, place: tuple[int, int]) -> bool:
        """Take over another letter of the same message. Return whether only that one has all of its bytes.

        The later receipt counts: other content of the bet may have come between. What has all bytes is kept.
        """
        self.received, self.revision = found.received, found.revision
        was_whole, is_whole = self.kind is DeadLetterKind.ERROR, found.kind is DeadLetterKind.ERROR
        if is_whole or not was_whole:
            self.kind, self.reason, self.size = found.kind, found.reason, found.size
            self.partition, self.offset = place
        return is_whole and not was_whole


class Filter(NamedTuple):
    """Which dead letters are meant. Everything by default."""

    reason: str = ""
    """A part of the reason, in any case."""
    field: str = ""
    """The first wrong field, as in `DeadLetterCause`."""
    window: Window = EVER
    """When the letters were received."""
    bet: str | None = None
    """The betId in the message, as far as it can be read."""
    key: str = ""
    """The beginning of the key."""

    def wants(self, letter: Letter) -> bool:
        """Whether a letter is meant, except by its bet."""
        cause, begin, end = cause_of(letter.reason), self.window.begin / 1000, self.window.end
        return (
            self.reason.lower() in cause.reason.lower()
            and self.field in ("", cause.field)
            and begin <= letter.received
            and (end is None or letter.received < end / 1000)
            and letter.key.startswith(self.key)
        )


def read_letters(
    settings: Settings,
    wanted: Filter,
    on_letter: Callable[[Letter, bytes], object] = lambda letter, body: None,
    *,
    visible: bool = True,
) -> list[Letter]:
    """Return the dead letters of the feed that are meant, including those redriven, in order of receipt.

    Passes each that may be meant, with its bytes, to `on_letter`, before it is known whether it was redriven;
    one whose bytes became whole when it came again, twice. A message that was dead-lettered twice counts
    once, unless it was redriven in between. Samples are no dead letters.
    Waits for open transactions unless `visible`. Skips records that no bridge can have written, and logs
    their number. Raises KafkaUnavailable if no broker answers, TopologyError if there is no topic.
    """
    settings.require("kafka.bootstrap_servers")
    topic = topics.declare(settings).deadletters.name
    admin.require_topic(settings.kafka, topic)
    letters: dict[str, Letter] = {}
    foreign, feed = SkippedRecords(), settings.feed.name

    def take(message: Message) -> None:
        try:
            letter = letter_after(message, feed, letters)
        except ForeignRecord as error:
            foreign.add(at(message, error))
            return
        body = message.value() or b""
        if letter is not None and (wanted.bet is None or wanted.bet == bet_id(body)):
            letters[letter.key] = letter
            on_letter(letter, body)

    TopicScan(topic, take, visible=visible, stall_seconds=IN_VAIN_SECONDS).read(settings)
    foreign.log()
    return sorted(filter(wanted.wants, letters.values()), key=lambda one: (one.received, one.place))


def letter_after(message: Message, feed: str, letters: Mapping[str, Letter]) -> Letter | None:
    """Return the feed's letter in a record, None if its bytes are not new. A mark changes the one before it.

    Raises ForeignRecord for a record that no bridge has written.
    """
    headers = headers_of(message)
    if headers.get("feed", feed) != feed:
        return None
    key = key_of(message).decode()
    if not _DIGEST.fullmatch(key):
        raise ForeignRecord("its key is not a SHA-256")
    known = letters.get(key)
    if headers.get("kind") == DeadLetterKind.REDRIVE.value:
        mark = MarkHeaders.read(headers)
        if known is not None:
            known.outcome, known.tries, known.redriven = mark.outcome, mark.tries, mark.redriven
            if mark.outcome is RedriveOutcome.FAILED:
                known.reason = mark.reason or known.reason
        return None
    found = LetterHeaders.read(headers)
    if found.kind is DeadLetterKind.SAMPLE:
        return None
    place = place_of(message)
    if known is not None and known.open:
        return known if known.merge_repeat(found, place) else None
    return Letter(key, found.kind, found.reason, found.received, found.revision, found.size, *place)


def bet_id(body: bytes) -> str | None:
    """Return the betId in a message that is no valid bet; None if there is none to be read."""
    try:
        found = orjson.loads(body)["data"]["betId"]
    except (ValueError, LookupError, TypeError):
        return None
    return found if isinstance(found, str) else None


def batches(
    letters: Iterable[Letter], limits: BatchSettings, pace: KafkaPace | None = None
) -> Iterator[list[Letter]]:
    """Yield letters in transactions: at most two records a letter and a checkpoint, at a `pace` if given."""
    batch: list[Letter] = []
    size = 0
    for letter in letters:
        records = 2 * (len(batch) + 1) + 1
        most = limits.max_bytes if pace is None else pace.bytes
        if batch and (records > limits.max_records or size + letter.size > most):
            yield batch
            batch, size = [], 0
        batch.append(letter)
        size += letter.size
    if batch:
        yield batch


def read_messages(settings: Settings, letters: Sequence[Letter]) -> dict[tuple[int, int], Message]:
    """Return the records of dead letters by their place. Raises as `TopicScan.read`.

    Reads from the first to the last of each partition.
    """
    wanted = {letter.place for letter in letters}
    found: dict[tuple[int, int], Message] = {}

    def take(message: Message) -> None:
        if (place := place_of(message)) in wanted:
            found[place] = message

    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for partition, offset in wanted:
        starts[partition] = min(starts.get(partition, offset), offset)
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    topic = topics.declare(settings).deadletters.name
    TopicScan(topic, take, start=starts, ends=ends, stall_seconds=IN_VAIN_SECONDS).read(settings)
    return found


@dataclass(frozen=True, slots=True)
class CauseSummary:
    """The dead letters of one cause."""

    cause: DeadLetterCause
    count: int
    oversized: int
    """How many of them are not kept whole."""
    tried: int
    """How many of them were redriven and failed again."""
    first: float
    """Unix seconds."""
    last: float
    sample: str
    """Key of the last one."""


def by_cause(letters: Iterable[Letter]) -> list[CauseSummary]:
    """Return a summary of each cause of dead letters, the most frequent first."""
    causes: dict[DeadLetterCause, list[Letter]] = {}
    for letter in letters:
        causes.setdefault(cause_of(letter.reason), []).append(letter)
    summaries = [
        CauseSummary(
            cause,
            len(found),
            sum(letter.kind is DeadLetterKind.OVERSIZED for letter in found),
            sum(letter.tries > 0 for letter in found),
            found[0].received,
            found[-1].received,
            found[-1].key,
        )
        for cause, found in causes.items()
    ]
    return sorted(summaries, key=lambda summary: -summary.count)


def cause_as_json(summary: CauseSummary) -> dict[str, Any]:
    """Return a summary for scripts."""
    return {
        "field": summary.cause.field or None,
        "reason": summary.cause.reason,
        "count": summary.count,
        "oversized": summary.oversized,
        "tried": summary.tried,
        "first": format_utc(summary.first),
        "last": format_utc(summary.last),
        "sample": summary.sample,
    }


def causes_as_lines(summaries: Sequence[CauseSummary], redriven: int) -> str:
    """Return the open dead letters for people; `redriven` is the number of those that are not open."""
    lines = []
    for summary in summaries:
        cause = summary.cause
        lines.append(f"{summary.count:,}  {cause.field or 'the whole message'}: {cause.reason}")
        span = f"first {format_utc(summary.first)}, last {format_utc(summary.last)}"
        notes = [f"sample {summary.sample[:KEY_SHOWN]}"]
        notes += [f"{summary.oversized:,} oversized"] if summary.oversized else []
        notes += [f"{summary.tried:,} failed again"] if summary.tried else []
        lines.append(f"    {span}; {', '.join(notes)}")
    count = sum(summary.count for summary in summaries)
    lines.append(f"{count:,} open, {redriven:,} redriven")
    return "\n".join(lines)


def resolve_key(letters: Sequence[Letter], key: str) -> Letter:
    """Return the only letter of a key or the beginning of one. Raises SettingsError for none or several."""
    if len({letter.key for letter in letters}) == 1:
        return letters[-1]
    found = "no dead letter has" if not letters else f"{len(letters)} dead letters have"
    raise SettingsError(f"{found} a key that begins with {key!r}; `bridge deadletters list` shows keys")


def letter_as_json(letter: Letter, message: Message) -> dict[str, Any]:
    """Return a dead letter with its record: the bytes as text if they are UTF-8, else in base64."""
    body = message.value() or b""
    try:
        content: dict[str, Any] = {"value": body.decode()}
    except UnicodeDecodeError:
        content = {"base64": base64.b64encode(body).decode()}
    return {
        "key": letter.key,
        "topic": message.topic(),
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": message.timestamp()[1],
        "headers": headers_of(message),
        "tries": letter.tries,
        "outcome": letter.outcome and letter.outcome.value,
        "redriven": None if letter.redriven is None else format_utc(letter.redriven),
        "lastReason": letter.reason,
        **content,
    }


def letter_as_lines(letter: Letter, message: Message) -> str:
    """Return a dead letter for people, and the beginning of its bytes."""
    body = message.value() or b""
    text = body.decode("utf-8", "backslashreplace")
    lines = [
        f"key       {letter.key}",
        f"place     {message.topic()} partition {letter.partition} offset {letter.offset}",
        f"received  {format_utc(letter.received)}, at position {letter.revision}",
        f"bet       {bet_id(body) or 'not readable'}",
        f"kind      {letter.kind.value}, {letter.size:,} bytes",
        f"reason    {headers_of(message)['reason']}",
    ]
    if letter.outcome is not None and letter.redriven is not None:
        tried = f"{letter.outcome.value}, {format_utc(letter.redriven)}, tries: {letter.tries}"
        lines.append(f"redriven  {tried}" + (f", {letter.reason}" if letter.open else ""))
    cut = "" if len(text) <= SHOWN_CHARACTERS else "…\n(`bridge deadletters export` writes the whole message)"
    return "\n".join([*lines, "", text[:SHOWN_CHARACTERS] + cut])
