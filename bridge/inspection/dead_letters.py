"""Reads the dead letters of a feed with what has become of them; prints, selects and exports them."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
    DeadLetter,
    DeadLetterCause,
    DeadLetterKind,
    RedriveMark,
    RedriveOutcome,
    cause_of,
)
from bridge.records.message import SkippedRecords, at, headers_of, place_fields, place_of, where

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")

SHOWN_CHARACTERS = 2_000
"""Characters of a message that are shown to people."""
KEY_SHOWN = 12
"""Characters of a key that are shown; `show` finds a letter by fewer than all of them."""
EVER = Window(0, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter(DeadLetter):
    """A dead letter that is no sample, without its bytes, and what has become of it.

    Its `reason` is that of the last try.
    """

    tries: int = 0
    outcome: RedriveOutcome | None = None
    """The outcome of the last try; None before the first."""
    redriven: float | None = None
    """When it was last tried, Unix seconds."""

    @property
    def open(self) -> bool:
        """Whether it has not been redriven, or failed again."""
        return self.outcome in (None, RedriveOutcome.FAILED)

    @property
    def is_whole(self) -> bool:
        """Whether all of its bytes are in its record."""
        return self.kind is DeadLetterKind.ERROR

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset."""
        return self.partition, self.offset

    def after(self, mark: RedriveMark) -> Letter:
        """Return it after a try."""
        failed = mark.outcome is RedriveOutcome.FAILED
        reason = mark.reason or self.reason if failed else self.reason
        return replace(self, outcome=mark.outcome, tries=mark.tries, redriven=mark.redriven, reason=reason)

    def repeated_by(self, other: Letter) -> Letter:
        """Return it after another letter of the same message. What has all bytes is kept.

        The later receipt counts: other content of the bet may have come between.
        """
        kept = other if other.is_whole or not self.is_whole else self
        return replace(
            kept,
            received=other.received,
            revision=other.revision,
            tries=self.tries,
            outcome=self.outcome,
            redriven=self.redriven,
        )


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


def letter_after(message: Message, feed: str, letters: dict[str, Letter]) -> Letter | None:
    """Return the feed's letter in a record, None if its bytes are not new: then the one in `letters` changes.

    Raises ForeignRecord for a record that no bridge has written.
    """
    headers = headers_of(message)
    if headers.get("feed", feed) != feed:
        return None
    place = place_fields(message)
    if not _DIGEST.fullmatch(place["key"]):
        raise ForeignRecord("its key is not a SHA-256")
    known = letters.get(place["key"])
    if headers.get("kind") == DeadLetterKind.REDRIVE:
        mark = RedriveMark.read(headers)
        if known is not None:
            letters[known.key] = known.after(mark)
        return None
    place["topic"] = sys.intern(place["topic"])  # there may be millions
    found = Letter.read(place, headers, b"")
    if found.kind is DeadLetterKind.SAMPLE:
        return None
    if known is None or not known.open:
        return found
    letters[known.key] = known.repeated_by(found)
    return letters[known.key] if found.is_whole and not known.is_whole else None


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


class CauseSummary(NamedTuple):
    """The dead letters of one cause, in order of receipt."""

    cause: DeadLetterCause
    letters: Sequence[Letter]

    @property
    def oversized(self) -> int:
        """How many of them are not kept whole."""
        return sum(not letter.is_whole for letter in self.letters)

    @property
    def tried(self) -> int:
        """How many of them were redriven and failed again."""
        return sum(letter.tries > 0 for letter in self.letters)


def by_cause(letters: Iterable[Letter]) -> list[CauseSummary]:
    """Return a summary of each cause of dead letters, the most frequent first."""
    causes: dict[DeadLetterCause, list[Letter]] = {}
    for letter in letters:
        causes.setdefault(cause_of(letter.reason), []).append(letter)
    return sorted(map(CauseSummary._make, causes.items()), key=lambda summary: -len(summary.letters))


def cause_as_json(summary: CauseSummary) -> dict[str, Any]:
    """Return a summary for scripts; the sample is the key of the last letter."""
    return {
        "field": summary.cause.field or None,
        "reason": summary.cause.reason,
        "count": len(summary.letters),
        "oversized": summary.oversized,
        "tried": summary.tried,
        "first": format_utc(summary.letters[0].received),
        "last": format_utc(summary.letters[-1].received),
        "sample": summary.letters[-1].key,
    }


def causes_as_lines(summaries: Sequence[CauseSummary], redriven: int) -> str:
    """Return the open dead letters for people; `redriven` is the number of those that are not open."""
    lines = []
    for summary in summaries:
        cause, letters = summary
        lines.append(f"{len(letters):,}  {cause.field or 'the whole message'}: {cause.reason}")
        first, last = letters[0], letters[-1]
        notes = [f"sample {last.key[:KEY_SHOWN]}"]
        notes += [f"{summary.oversized:,} oversized"] if summary.oversized else []
        notes += [f"{summary.tried:,} failed again"] if summary.tried else []
        span = f"first {format_utc(first.received)}, last {format_utc(last.received)}"
        lines.append(f"    {span}; {', '.join(notes)}")
    count = sum(len(summary.letters) for summary in summaries)
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
        f"place     {where(message)}",
        f"received  {format_utc(letter.received)}, at position {letter.revision}",
        f"bet       {bet_id(body) or 'not readable'}",
        f"kind      {letter.kind}, {letter.size:,} bytes",
        f"reason    {headers_of(message)['reason']}",
    ]
    if letter.outcome is not None and letter.redriven is not None:
        tried = f"{letter.outcome.value}, {format_utc(letter.redriven)}, tries: {letter.tries}"
        lines.append(f"redriven  {tried}" + (f", {letter.reason}" if letter.open else ""))
    cut = "" if len(text) <= SHOWN_CHARACTERS else "…\n(`bridge deadletters export` writes the whole message)"
    return "\n".join([*lines, "", text[:SHOWN_CHARACTERS] + cut])
