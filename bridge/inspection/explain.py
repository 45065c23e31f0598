"""Tells all that the topics know of one bet, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

import orjson
from confluent_kafka import Message

from bridge.clock import MICROS
from bridge.config import Settings
from bridge.errors import SchemaError, TopologyError
from bridge.formatting import format_duration, format_utc, is_time, plural, shortened
from bridge.inspection.dead_letters import bet_id as id_in
from bridge.inspection.formats import as_json, as_text, lacking
from bridge.inspection.readers import format_move
from bridge.inspection.replay import Replay, Window
from bridge.inspection.selection import Selection
from bridge.kafka import admin, clients
from bridge.kafka.reader import IN_VAIN_SECONDS, TopicScan
from bridge.reader import DEAD_LETTERS, GAPS, Bet, DeadLetter, Gap, Names, Place, Removed, read
from bridge.reader.money import PAYOUTS, format_payout, format_stake
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint
from bridge.records.dead_letter import DeadLetterKind
from bridge.records.message import headers_of, record_of, where
from bridge.registry import Registry
from bridge.stored.checkpoint_reader import RETIRED, SUCCEEDS

NEARBY_SECONDS: Final = 3600.0
"""Gaps and hand-overs this close to a time of the bet are told."""
BESIDE: Final = 200
"""Offsets that are read on both sides of what is this close: an owner before may have ended long before."""
MOST_TEXT: Final = 100
"""Characters of a value that has changed."""


@dataclass(frozen=True)
class Event:
    """Something that happened, at Unix seconds."""

    at: float
    what: str
    details: Sequence[str] = ()
    record: dict[str, Any] = field(default_factory=dict)
    """The same for scripts."""


@dataclass(frozen=True)
class Explanation:
    """What is known of a bet."""

    bet: str
    events: Sequence[Event]
    names: Sequence[str | None]
    """The names of each item of its last version, in the language asked for; None for one without any."""
    found: bool
    """Whether anything names the bet."""
    lacking: str = ""
    """Which languages there are, if there are no names in the one asked for."""


class _Commit(NamedTuple):
    """A checkpoint that the topic still has."""

    of: Checkpoint
    retires: str = ""
    """The feed that uses the topics from then on, if this one is over (`bridge checkpoint retire`)."""
    succeeds: str = ""
    """The feed that is over, if this one uses its topics."""

    @property
    def at(self) -> float:
        return self.of.updated_at


def explain(settings: Settings, bet_id: str, language: str | None) -> Explanation:
    """Read the topics and return what they know of a bet. Raises as `Replay` and `read`.

    Without a `language`, names are English, and left out where no names are published.
    """
    selection = Selection(bets=frozenset([bet_id]), everywhere=True)
    with Replay(settings, Window(0, None), selection, strict=True) as replay:
        records = list(replay.changes())
    versions = [record for record in records if isinstance(record, Bet)]
    removals = [record for record in records if isinstance(record, Removed)]
    letters = [letter for letter in read(DEAD_LETTERS, settings=settings) if _names_bet(letter.body, bet_id)]
    times = [
        *(record.timestamp / 1000 for record in records),
        *(bet.value["settlementTime"] / MICROS for bet in versions),
        *(letter.timestamp / 1000 for letter in letters),
    ]
    runs = _commits(settings, times)
    commits = [*chain(*runs)]
    events = [
        *_versions(versions, commits),
        *(Event(x.timestamp / 1000, "erased, by a tombstone", [_place(x)], asdict(x)) for x in removals),
        *map(_letter, letters),
        *_marks(settings, bet_id, letters),
        *(
            _gap(gap)
            for gap in read(GAPS, settings=settings)
            if _near(times, gap.start.timestamp(), gap.end.timestamp())
        ),
        *(
            event
            for event in (*chain(*map(_hand_overs, runs)), *_moves(commits), *_retirements(commits))
            if _near(times, event.at, event.at)
        ),
    ]
    names: list[str | None] = []
    missing = ""
    try:
        if versions:
            with Names(settings) as translations:
                missing = lacking(translations, language or "en")
                names = [as_text(item) for item in translations.of(versions[-1], language or "en")]
    except TopologyError:
        if language is not None:
            raise
    return Explanation(bet_id, sorted(events, key=lambda event: event.at), names, bool(times), missing)


def _versions(versions: Sequence[Bet], commits: Sequence[_Commit]) -> Iterator[Event]:
    before: Bet | None = None
    for bet in versions:
        amount = bet.value["amount"]
        if before is None:
            what = "first settlement" if bet.version == 1 else "first settlement that the topic still has"
        else:
            what = (
                "correction of the same version"
                if bet.version == before.version
                else "settled again"
                if bet.version > before.version
                else "went back to an earlier version"
            )
        details = [
            f"stake {format_stake(amount)}, payout {format_payout(bet.value['payout'], amount)}, "
            f"{plural(len(bet.items), 'item')}",
            f"settled {format_utc(bet.value['settlementTime'] / MICROS)}, "
            f"received {format_utc(bet.received)}, {_committed(bet, commits)}",
            *(["redriven from a dead letter"] if bet.redriven_from is not None else []),
            _place(bet),
            *(f"changed: {change}" for change in (changes(before.value, bet.value) if before else ())),
        ]
        yield Event(bet.timestamp / 1000, f"{what}: {bet.result} v{bet.version}", details, as_json(bet))
        before = bet


def _place(record: Place) -> str:
    return f"{record.topic} partition {record.partition} offset {record.offset}"


def _committed(bet: Bet, commits: Sequence[_Commit]) -> str:
    """Return when it was committed: with the first checkpoint after its receipt, if that is still there."""
    received = bet.timestamp / 1000
    found = next((commit for commit in commits if commit.at >= received), None)
    if commits and found is None:
        return "not yet covered by a visible checkpoint"
    if found is None or received < commits[0].at or found.at > received + NEARBY_SECONDS:
        return "commit time unknown: its checkpoint has been compacted away"
    return f"in the checkpoint of {format_utc(found.at)}"


def changes(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield what differs between two values, `path: old → new`, by field."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(name for name in after if name not in before)]:
            yield from changes(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from changes(old, new, f"{path}[{number}]")
    elif before != after:
        old, new = _shown(path, before), _shown(path, after)
        if old == new:  # they differ beyond the decimals that are shown
            old, new = (shortened(repr(value), MOST_TEXT) for value in (before, after))
        yield f"{path}: {old} → {new}"


def _shown(path: str, value: Any) -> str:
    name = path.rpartition(".")[2]
    if name in PAYOUTS and isinstance(value, float):
        return format_payout(value, None)
    if name.endswith("Time") and isinstance(value, int):
        return format_utc(value / MICROS)
    if isinstance(value, list):
        return f"{len(value)} entries"
    return shortened(str(value), MOST_TEXT)


def _letter(letter: DeadLetter) -> Event:
    what = (
        "sample of a message with unknown fields"
        if letter.kind == "sample"
        else f"dead letter ({letter.kind})"
    )
    details = [
        letter.reason,
        f"{_place(letter)}, {letter.size} bytes",
    ]
    record = {**asdict(letter), "body": letter.body.decode("utf-8", "replace")}
    return Event(letter.timestamp / 1000, what, details, record)


def _names_bet(body: bytes, bet_id: str) -> bool:
    """Return whether a message is of the bet; of one that is cut off, whether it has its id as a text."""
    found = id_in(body)
    return found == bet_id if found is not None else orjson.dumps(bet_id) in body


def _gap(gap: Gap) -> Event:
    return Event(
        gap.detected_at.timestamp(),
        f"a gap was declared: {gap.cause}",
        [f"{format_utc(gap.start.timestamp())} to {format_utc(gap.end.timestamp())} may be missing"],
        asdict(gap),
    )


def _hand_overs(commits: list[_Commit]) -> Iterator[Event]:
    # Those of commands that owned the feed for a moment are told as what they did.
    bridges = [commit for commit in commits[:1] if not (commit.retires or commit.succeeds)] + [
        after
        for before, after in pairwise(commits)
        if not (after.retires or after.succeeds)
        and (after.of.moved is None or after.of.moved.at != after.at)
        and (
            after.of.counters.received > before.of.counters.received
            or after.of.counters.redriven == before.of.counters.redriven
        )
    ]
    for before, after in pairwise(bridges):
        if (old := before.of.owner) != (new := after.of.owner):
            pause = format_duration(max(0.0, after.at - before.at))
            details = [f"from {old} to {new}, {pause} between their checkpoints"]
            record = {"from": old, "to": new}
            yield Event(after.at, "the feed changed hands", details, record)


def _moves(commits: Sequence[_Commit]) -> Iterator[Event]:
    """Yield the changes of the position by an operator that the checkpoints still have."""
    for move in dict.fromkeys(commit.of.moved for commit in commits if commit.of.moved is not None):
        yield Event(move.at, "the position was moved", [format_move(move)], asdict(move))


def _retirements(commits: Sequence[_Commit]) -> Iterator[Event]:
    """Yield what `bridge checkpoint retire` did."""
    for commit in commits:
        if commit.retires or commit.succeeds:
            details = [
                f"{commit.retires} uses the topics from then on"
                if commit.retires
                else f"the feed {commit.succeeds} is over, and this one uses its topics"
            ]
            record = {"by": commit.of.owner, "retires": commit.retires, "succeeds": commit.succeeds}
            what = "the feed was retired" if commit.retires else "another feed was retired"
            yield Event(commit.at, what, details, record)


def _marks(settings: Settings, bet_id: str, letters: Sequence[DeadLetter]) -> list[Event]:
    """Return what the marks of redriven dead letters say of the bet, or of letters that name it."""
    keys = {letter.key for letter in letters}
    events: list[Event] = []

    def take(message: Message) -> None:
        headers, key = headers_of(message), message.key()
        name = key.decode("utf-8", "replace") if isinstance(key, bytes) else ""
        if headers.get("kind") != DeadLetterKind.REDRIVE.value or headers.get("feed") != settings.feed.name:
            return
        if name not in keys and headers.get("bet") != bet_id:
            return
        details = [
            *(
                f"{header} {headers[header]}"
                for header in ("reason", "version", "tries")
                if header in headers
            ),
            f"of the dead letter {name}",
            where(message),
        ]
        at, outcome = message.timestamp()[1] / 1000, headers.get("outcome", "unknown")
        events.append(Event(at, f"redriven: {outcome}", details, {**headers, "key": name}))

    name = topics.declare(settings).deadletters.name
    TopicScan(name, take, visible=True, stall_seconds=IN_VAIN_SECONDS).read(settings)
    return events


def _near(times: Sequence[float], begin: float, end: float) -> bool:
    return any(begin - NEARBY_SECONDS <= at <= end + NEARBY_SECONDS for at in times)


def nearby(times: Sequence[float], end: int, offset_at: Callable[[float], int]) -> list[tuple[int, int]]:
    """Return the ranges of offsets before `end` that were written near these times, and the last one."""
    hour = NEARBY_SECONDS
    found = [(end, end)] + [
        (offset_at(at - hour), offset_at(at + 2 * hour)) for at in {at // hour * hour for at in times}
    ]
    ranges: list[tuple[int, int]] = []
    for first, last in sorted(found):
        start, stop = max(0, first - BESIDE), min(last + BESIDE, end)
        if ranges and start <= ranges[-1][1]:
            start, stop = ranges[-1][0], max(stop, ranges.pop()[1])
        ranges.append((start, stop))
    return ranges


def _commits(settings: Settings, times: Sequence[float]) -> list[list[_Commit]]:
    """Return the checkpoints that the compacted topic still has near these times, and the last ones.

    In runs, in order, also those of former feeds.
    """
    runs: list[list[_Commit]] = []
    name, client = topics.declare(settings).checkpoints.name, clients.admin(settings.kafka)
    if admin.topic_id(client, name) is None:
        return runs
    [end] = admin.end_offsets(client, name, 1, visible=True)

    def offset_at(moment: float) -> int:
        return admin.offsets_since(client, name, moment, [end])[0]

    with Registry(settings.registry) as registry:
        codec = registry.codec("feed-checkpoint")

        def take(message: Message) -> None:
            if message.value() is not None:
                try:
                    found = record_of(message, codec, Checkpoint.from_avro)
                except SchemaError:
                    return  # `bridge checkpoint show` reports it
                headers = headers_of(message)
                runs[-1].append(_Commit(found, headers.get(RETIRED, ""), headers.get(SUCCEEDS, "")))

        for start, stop in nearby([at for at in times if is_time(at)], end, offset_at):
            runs.append([])
            scan = TopicScan(name, take, start={0: start}, ends={0: stop}, stall_seconds=IN_VAIN_SECONDS)
            scan.read(settings)
    return runs


def as_lines(explanation: Explanation) -> str:
    """Return an explanation for people, ready to be pasted."""
    lines = [f"bet {explanation.bet}"]
    lines += [f"  {name or 'no names'}" for name in explanation.names]
    for event in explanation.events:
        lines += ["", f"{format_utc(round(event.at, 3))}  {event.what}"]
        lines += [f"  {detail}" for detail in event.details]
    return "\n".join(lines)


def as_data(explanation: Explanation) -> dict[str, Any]:
    """Return the same for scripts."""
    return {
        "bet": explanation.bet,
        "names": list(explanation.names),
        "events": [vars(event) | {"at": format_utc(round(event.at, 3))} for event in explanation.events],
    }
