"""What a job keeps between runs, in a compacted topic of its own. A run writes only what has changed.

    in-use/event:77       when bets last used an id, so that old bets are not read again
    read                  up to where the bets were read, and the id of their topic
    seen                  the last run whose uses a snapshot has covered
    owed/0                names of what is refused until the next run, ten thousand a record
    partial/0             until the next whole run: narrowed ones have kept a part of the answer
    missing/0             until the next full run: a list lacked it that was too short to be believed

Each key begins with the job. Values are JSON: no other program reads them. Times are Unix seconds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final

import orjson

from bridge.snapshots.model import Job, Offsets, is_key, numbers_in
from bridge.snapshots.usage import HOUR_SECONDS, EventPlace, Id, Usage, Use

NAMES_PER_RECORD: Final = 10_000
_INVALID: Final = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""What garbage causes."""


class JobState:
    """The state of one job. `records` has the topic's keys and values, those of the other job included.

    Invalid records are ignored, and counted in `foreign`: what they held is learnt again.
    """

    def __init__(self, job: Job, records: Mapping[bytes, bytes]) -> None:
        self.usage = Usage()
        self.refused: dict[str, set[str]] = {"owed": set(), "partial": set(), "missing": set()}
        """Names of what was asked and not answered, such as `markets:77`, by when to ask again."""
        self.position: Offsets = {}
        """Position up to which the settled bets were read; empty before the first run."""
        self.symbols_from: Offsets = {}
        """From where on they were read for their currencies, too."""
        self.topic_id: str | None = None
        """The id of the topic of bets that was read."""
        self.foreign = 0
        self._prefix = f"{job}/"
        self._keep_days: float = 0
        self._last_run = 0
        """How many runs have learnt something new."""
        self._seen: int | None = None
        """How many of these a snapshot has covered; None while no snapshot is known to exist."""
        self._small: dict[str, bytes] = {}
        """The records but for the uses, as the topic has them."""
        for key, value in records.items():
            if key.startswith(self._prefix.encode()):
                try:
                    self._load(key.decode().removeprefix(self._prefix), value)
                except _INVALID:
                    self.foreign += 1
        self._run = self._last_run
        """The same with this run, once it has."""
        if not self.position:
            self._seen = None
        elif self._seen is not None and self._seen > self._last_run:
            self._seen = 0  # it is from before the topic was recreated: nothing learnt since was covered

    def _load(self, key: str, value: bytes) -> None:
        content = orjson.loads(value)
        section, _, name = key.partition("/")
        if section == "in-use":
            kind, id_ = _id_in(name)
            self.usage.of[kind][id_] = use = _use(kind, content)
            self.usage.newest = max(self.usage.newest, use.at)
            return
        if section in self.refused:
            if not all(x.startswith("currency:") or is_key(x) for x in content):
                raise ValueError(key)
            self.refused[section].update(content)
        elif section == "read":
            position, run, keep, topic_id = (content[x] for x in ("position", "run", "keep", "topic"))
            position, symbols = (
                {_count(int(p)): _count(offset) for p, offset in offsets.items()}
                for offsets in (position, content.get("symbols", position))
            )
            if not (isinstance(topic_id, str | None) and isinstance(keep, int | float)):
                raise TypeError(key)
            self._last_run, self._keep_days = _count(run), keep
            self.position, self.symbols_from, self.topic_id = position, symbols, topic_id
        elif section == "seen":
            self._seen = _count(content["run"])
        else:
            return  # of a newer or an older version
        self._small[key] = value

    # Uses.

    def reads_on(self, topic_id: str | None, keep_days: float) -> bool:
        """Return whether reading continues at `position`: same topic, and names are kept no longer."""
        return bool(self.position) and self.topic_id == topic_id and keep_days <= self._keep_days

    def learn(self, bet: Mapping[str, Any], received: float) -> None:
        """Learn from a bet received at that time; a record may have none."""
        hour = max(0, int(received))
        self.usage.add(bet, hour - hour % HOUR_SECONDS, self._last_run + 1)

    def learnt(self, position: Offsets, topic_id: str | None, keep_days: float) -> None:
        """Note up to where the topic's bets were read, and from how many days ago."""
        if not self.reads_on(topic_id, keep_days):
            self.symbols_from = {}
        self.position, self.topic_id, self._keep_days = dict(position), topic_id, keep_days
        if self.usage.changed:
            self._run = self._last_run + 1

    def adopt(self, other: JobState, topic_id: str | None, keep_days: float) -> None:
        """Take over the currencies that the other job has learnt, if it read on where this one stopped."""
        begun = self.position if self.reads_on(topic_id, keep_days) else {}
        if other.reads_on(topic_id, keep_days) and all(
            other.symbols_from.get(p, 0) <= begun.get(p, 0) <= end for p, end in other.position.items()
        ):
            for symbol, use in other.usage.of["currency"].items():
                self.usage.note("currency", symbol, use.at, self._last_run + 1)
            self.usage.newest = max(self.usage.newest, other.usage.newest)
            self.learnt(other.position, topic_id, keep_days)

    def used(self, recent: float, *, full: bool) -> Usage:
        """Return what bets have used since the last snapshot; in a `full` run, since `recent` as well.

        Before the first snapshot, only uses since `recent` count as new.
        """
        return self.usage.since(recent if full or self._seen is None else inf, self._seen)

    def mark_seen(self) -> None:
        """Note that a snapshot covers everything learnt so far."""
        self._seen = self._run

    # Records.

    def changes(self) -> dict[bytes, bytes | None]:
        """Return the records that changed since the last call; None for those that are removed."""
        small = {key: orjson.dumps(content) for key, content in self._contents()}
        changed: dict[str, bytes | None] = dict.fromkeys(self._small.keys() - small.keys())
        changed |= {key: value for key, value in small.items() if self._small.get(key) != value}
        for kind, id_ in self.usage.changed:
            use = self.usage.of[kind].get(id_)
            name = ":".join(map(str, id_)) if isinstance(id_, tuple) else id_
            changed[f"in-use/{kind}:{name}"] = None if use is None else _dumped(use)
        self._small = small
        self.usage.changed.clear()
        return {f"{self._prefix}{key}".encode(): changed[key] for key in sorted(changed)}

    def _contents(self) -> Iterator[tuple[str, object]]:
        """Yield key and content of the small records."""
        if self.position:
            places, symbols = (
                {str(partition): offset for partition, offset in sorted(offsets.items())}
                for offsets in (self.position, self.symbols_from)
            )
            read = {"position": places, "topic": self.topic_id, "run": self._run, "keep": self._keep_days}
            yield "read", {**read, "symbols": symbols}
        if self._seen is not None:
            yield "seen", {"run": self._seen}
        for until, names in self.refused.items():
            ordered = sorted(names)
            for number, start in enumerate(range(0, len(ordered), NAMES_PER_RECORD)):
                yield f"{until}/{number}", ordered[start : start + NAMES_PER_RECORD]


def _count(number: object) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("not a count")
    return number


def _id_in(name: str) -> tuple[str, Id]:
    """Return kind and id of a use: of `event:77`, `market-type:1:18` or `currency:EUR`."""
    if name.startswith("currency:"):
        return "currency", name.removeprefix("currency:")
    kind, numbers = numbers_in(name)
    if len(numbers) != 1 + (kind == "market-type"):
        raise ValueError(name)
    return kind, numbers if kind == "market-type" else numbers[0]


def _use(kind: str, content: Mapping[str, Any]) -> Use:
    use = Use(_count(content["at"]), _count(content["run"]))
    if kind == "event":
        use.place = EventPlace(*map(int, content["place"]))
        use.markets, use.selections = (array("q", content[x]) for x in ("markets", "selections"))
    return use


def _dumped(use: Use) -> bytes:
    """Return the record of a use, whose ids are not learnt any more."""
    entry: dict[str, Any] = {"at": use.at, "run": use.run}
    if use.place is not None:
        use.markets, use.selections = array("q", use.markets), array("q", use.selections)
        entry |= {"place": [*use.place], "markets": [*use.markets], "selections": [*use.selections]}
    return orjson.dumps(entry)
