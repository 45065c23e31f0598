"""The state of a snapshot job between runs, in a separate compacted topic.

    in-use/event:77       what bets mention, and when they last did: old bets are not read again
    owed/0                names of what the provider failed to answer, ten thousand a record
    partial/0             names of what narrowed runs have kept a part of, likewise
    missing/0             names of what lists lacked that were too short to be believed, likewise
    read                  up to where the settled bets were read, and the id of their topic
    seen                  the last run whose references a snapshot has covered

Each key begins with the job. Values are JSON: no other program reads them. Times are Unix seconds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import orjson

from bridge.snapshots.model import Job, Offsets, is_key
from bridge.snapshots.references import Place, References

HOUR_SECONDS: Final = 3_600
"""Resolution of the last mention, which limits how often an entry is written again."""
MAX_IDS_OF_EVENT: Final = 20_000
"""Markets, and selections, kept for one event: they must fit into a record."""
NAMES_PER_RECORD: Final = 10_000


class JobState:
    """The state of one job. `records` has the topic's keys and values, those of other jobs included.

    Invalid records are ignored, and counted in `foreign`: what they held is learnt again.
    """

    def __init__(self, job: Job, records: Mapping[bytes, bytes]) -> None:
        self._prefix = f"{job}/".encode()
        cut = len(self._prefix)
        ours = {key[cut:]: value for key, value in records.items() if key.startswith(self._prefix)}
        self._entries = {key: value for key, value in ours.items() if _is_sound(key, value)}
        self.foreign = len(ours) - len(self._entries)
        self._changed: set[bytes] = set()
        read = self._get(b"read") or {"position": {}, "topic": None, "run": 0, "keep": 0}
        self.position: Offsets = {int(p): offset for p, offset in read["position"].items()}
        """Position up to which the settled bets were read; empty before the first run."""
        self.topic_id: str | None = read["topic"]
        """The id of the topic of bets that was read."""
        self._keep_days: float = read["keep"]
        """The value of `keep_days` with which bets were read."""
        self._last_run: int = read["run"]
        """Counts the runs that learnt something new."""
        self._run = self._last_run
        """The same with this run, once it has."""
        # A larger number than `_run` is from a topic that was recreated.
        self._seen: int = min((self._get(b"seen") or {"run": 0})["run"], self._run)
        self._first = not {b"read", b"seen"} <= self._entries.keys()
        """Whether no snapshot is known to exist yet."""
        self.newest: int = max((entry["at"] for _, entry in self._in_use()), default=0)
        """The hour of the newest bet learnt; 0 without any."""
        self.owed = self._names(b"owed/")
        """Names of what the provider failed to answer, such as `markets:77`."""
        self.partial = self._names(b"partial/")
        """Names of what narrowed runs have asked about and kept a part of."""
        self.missing = self._names(b"missing/")
        """Names of what lists lacked that were too short to be believed, such as `league:9`."""

    # References.

    def reads_on(self, topic_id: str | None, keep_days: float) -> bool:
        """Return whether reading continues at `position`: same topic, and names are kept no longer."""
        return bool(self.position) and self.topic_id == topic_id and keep_days <= self._keep_days

    def learn(self, hour: int, references: References) -> None:
        """Learn the references of bets received in the hour that begins at `hour`."""
        hour = max(0, hour)  # a record may have no timestamp
        self.newest = max(self.newest, hour)
        for key in _plain(references):
            self._remember(key, hour, {})
        for number, place in references.events.items():
            added = {
                "place": list(place),
                "markets": references.markets.get(number, ()),
                "selections": references.selections.get(number, ()),
            }
            self._remember(b"in-use/event:%d" % number, hour, added)

    def learnt(self, position: Offsets, topic_id: str | None, keep_days: float) -> None:
        """Note up to where the topic's bets were read, and from how many days ago."""
        self.position, self.topic_id, self._keep_days = dict(position), topic_id, keep_days
        places = {str(partition): offset for partition, offset in sorted(position.items())}
        self._put(b"read", {"position": places, "topic": topic_id, "run": self._run, "keep": keep_days})

    def references(self, recent: float, *, full: bool) -> References:
        """Return the references since the last snapshot; in a `full` run, those since `recent` as well.

        Before the first snapshot, only references since `recent` count as new.
        """
        since = recent if full or self._first else math.inf
        found = References()
        for name, entry in self._in_use():
            if entry["at"] + HOUR_SECONDS > since or (not self._first and entry["run"] > self._seen):
                _add_entry(found, name, entry)
        return found

    def in_use(self) -> References:
        """Return all references but markets and selections, of which there are millions."""
        found = References()
        for name, entry in self._in_use():
            _add_entry(found, name, {**entry, "markets": (), "selections": ()})
        return found

    def selections_in_use(self, among: Collection[int]) -> set[int]:
        """Return those of these selections that are in use."""
        found, wanted = set[int](), set(among)
        for name, entry in self._in_use():
            kind, _, number = name.partition(":")
            if kind == "event":
                found |= wanted.intersection(entry["selections"])
            elif kind == "selection":
                found |= wanted & {int(number)}
        return found

    def forget(self, before: float) -> None:
        """Drop references that no bet has mentioned since `before`."""
        for name, entry in self._in_use():
            if entry["at"] + HOUR_SECONDS <= before:
                self._put(f"in-use/{name}".encode(), None)

    def mark_seen(self) -> None:
        """Note that a snapshot covers everything learnt so far."""
        self._put(b"seen", {"run": self._run})

    def changes(self) -> dict[bytes, bytes | None]:
        """Return the records that changed since the last call; None for those that are removed."""
        self._put_names(b"owed/", self.owed)
        self._put_names(b"partial/", self.partial)
        self._put_names(b"missing/", self.missing)
        found = {self._prefix + key: self._entries.get(key) for key in sorted(self._changed)}
        self._changed.clear()
        return found

    # Records.

    def _names(self, start: bytes) -> set[str]:
        return {name for _, value in self._under(start) for name in orjson.loads(value)}

    def _put_names(self, start: bytes, names: set[str]) -> None:
        if names == self._names(start):
            return
        ordered = sorted(names)
        places = range(0, len(ordered), NAMES_PER_RECORD)
        records = {start + b"%d" % n: ordered[place:][:NAMES_PER_RECORD] for n, place in enumerate(places)}
        for key in {key for key, _ in self._under(start)} | records.keys():
            self._put(key, records.get(key))

    def _remember(self, key: bytes, hour: int, added: Mapping[str, Any]) -> None:
        old = self._get(key)
        new: dict[str, Any] = old or {"at": 0}
        changed = old is None or hour > new["at"]
        newer = hour >= new["at"]
        new["at"] = max(hour, new["at"])
        for name, value in added.items():
            if name == "place":
                if newer:
                    new[name] = value
                continue
            ids = set(new.get(name, ()))
            more = sorted(set(value) - ids)[: max(0, MAX_IDS_OF_EVENT - len(ids))]
            if more or name not in new:
                new[name] = [*new.get(name, ()), *more]
            changed = changed or bool(more)
        if changed:
            new["run"] = self._run = self._last_run + 1
            self._put(key, new)

    def _in_use(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for key, value in self._under(b"in-use/"):
            yield key.removeprefix(b"in-use/").decode(), orjson.loads(value)

    def _under(self, start: bytes) -> list[tuple[bytes, bytes]]:
        return [(key, value) for key, value in self._entries.items() if key.startswith(start)]

    def _get(self, key: bytes) -> dict[str, Any] | None:
        value = self._entries.get(key)
        return None if value is None else orjson.loads(value)

    def _put(self, key: bytes, content: dict[str, Any] | list[str] | None) -> None:
        value = None if content is None else orjson.dumps(content)
        if value == self._entries.get(key):
            return
        self._changed.add(key)
        if value is None:
            del self._entries[key]
        else:
            self._entries[key] = value


def _is_sound(key: bytes, value: bytes) -> bool:
    """Return whether a job may have written this record."""
    try:
        content = orjson.loads(value)
        match key.partition(b"/")[0]:
            case b"in-use":
                _add_entry(References(), key.removeprefix(b"in-use/").decode(), content)
                return _are_counts(content["at"], content["run"])
            case b"owed" | b"partial" | b"missing":
                return all(name.startswith("currency:") or is_key(name) for name in content)
            case b"read":
                places = [(int(partition), offset) for partition, offset in content["position"].items()]
                return _are_counts(content["run"], *(x for place in places for x in place)) and (
                    isinstance(content["topic"], str | None) and isinstance(content["keep"], int | float)
                )
            case b"seen":
                return _are_counts(content["run"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return True


def _are_counts(*numbers: object) -> bool:
    return all(type(number) is int and number >= 0 for number in numbers)


def _plain(references: References) -> Iterator[bytes]:
    """Yield the keys of references that are kept without further data."""
    for kind, numbers in (*references.listed.items(), ("selection", references.selections.get(None, ()))):
        for number in numbers:
            yield f"in-use/{kind}:{number}".encode()
    for sport, type_ in references.market_types:
        yield b"in-use/market-type:%d:%d" % (sport, type_)
    for symbol in references.currencies:
        yield f"in-use/currency:{symbol}".encode()


def _add_entry(references: References, key: str, entry: Mapping[str, Any]) -> None:
    kind, _, name = key.partition(":")
    match kind:
        case "currency":
            references.currencies.add(name)
        case "market-type":
            sport, type_ = name.split(":")
            references.market_types.add((int(sport), int(type_)))
        case "event":
            number = int(name)
            references.events[number] = Place(*map(int, entry["place"]))
            if markets := entry["markets"]:
                references.markets[number] = set(map(int, markets))
            if selections := entry["selections"]:
                references.selections[number] = set(map(int, selections))
        case "selection":
            references.selections.setdefault(None, set()).add(int(name))
        case "sport" | "region" | "league":
            references.listed[kind].add(int(name))
