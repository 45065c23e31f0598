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
from collections.abc import Mapping
from math import inf
from typing import Any, Final

import orjson

from bridge.snapshots.model import Job, Offsets, is_key
from bridge.snapshots.usage import HOUR_SECONDS, Id, Place, Usage, Use

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
        self._last_run = self._seen = 0
        """How many runs have learnt something new, and how many of these a snapshot has covered."""
        self._small: dict[str, bytes] = {}
        """The records but for the uses."""
        self._changed: set[str] = set()
        """Keys of these."""
        for key, value in records.items():
            if key.startswith(self._prefix.encode()):
                try:
                    self._load(key.decode().removeprefix(self._prefix), value)
                except _INVALID:
                    self.foreign += 1
        self._run = self._last_run
        """The same with this run, once it has."""
        # A larger number is from a topic that was recreated.
        self._seen = min(self._seen, self._last_run)
        self._is_first = not {"read", "seen"} <= self._small.keys()
        """Whether no snapshot is known to exist yet."""

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
        places, symbols = (
            {str(partition): offset for partition, offset in sorted(offsets.items())}
            for offsets in (position, self.symbols_from)
        )
        read = {"position": places, "topic": topic_id, "run": self._run, "keep": keep_days}
        self._put("read", {**read, "symbols": symbols})

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
        return self.usage.since(
            recent if full or self._is_first else inf, None if self._is_first else self._seen
        )

    def mark_seen(self) -> None:
        """Note that a snapshot covers everything learnt so far."""
        self._put("seen", {"run": self._run})

    # Records.

    def changes(self) -> dict[bytes, bytes | None]:
        """Return the records that changed since the last call; None for those that are removed."""
        for until, names in self.refused.items():
            ordered = sorted(names)
            count = -(-len(ordered) // NAMES_PER_RECORD)
            for n in range(count):
                self._put(f"{until}/{n}", ordered[n * NAMES_PER_RECORD :][:NAMES_PER_RECORD])
            for key in [x for x in self._small if x.startswith(f"{until}/")]:
                if not key[len(until) + 1 :].isdecimal() or int(key[len(until) + 1 :]) >= count:
                    self._put(key, None)
        found = {key: self._small.get(key) for key in self._changed}
        for kind, id_ in self.usage.changed:
            use = self.usage.of[kind].get(id_)
            name = ":".join(map(str, id_)) if isinstance(id_, tuple) else id_
            found[f"in-use/{kind}:{name}"] = None if use is None else _dumped(use)
        self._changed.clear()
        self.usage.changed.clear()
        return {f"{self._prefix}{key}".encode(): found[key] for key in sorted(found)}

    def _put(self, key: str, content: object) -> None:
        value = orjson.dumps(content) if content is not None else None
        if value != self._small.get(key):
            self._changed.add(key)
            if value is None:
                del self._small[key]
            else:
                self._small[key] = value


def _count(number: object) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("not a count")
    return number


def _id_in(name: str) -> tuple[str, Id]:
    """Return kind and id of a use: of `event:77`, `market-type:1:18` or `currency:EUR`."""
    kind, _, id_ = name.partition(":")
    if kind == "currency":
        return kind, id_
    numbers = tuple(map(int, id_.split(":")))
    if len(numbers) != 1 + (kind == "market-type"):
        raise ValueError(name)
    return kind, numbers if kind == "market-type" else numbers[0]


def _use(kind: str, content: Mapping[str, Any]) -> Use:
    use = Use(_count(content["at"]), _count(content["run"]))
    if kind == "event":
        use.place = Place(*map(int, content["place"]))
        use.markets, use.selections = (array("q", content[x]) for x in ("markets", "selections"))
    return use


def _dumped(use: Use) -> bytes:
    """Return the record of a use, whose ids are not learnt any more."""
    entry: dict[str, Any] = {"at": use.at, "run": use.run}
    if use.place is not None:
        use.markets, use.selections = array("q", use.markets), array("q", use.selections)
        entry |= {"place": [*use.place], "markets": [*use.markets], "selections": [*use.selections]}
    return orjson.dumps(entry)
