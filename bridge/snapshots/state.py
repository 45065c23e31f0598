"""What a snapshot job remembers from one run to the next, in a compacted topic of its own.

    in-use/event:77       what bets mention, and when they last did: nobody has to read old bets again
    owed/0                what the provider did not tell when it was asked, by ten thousand
    missing/0             what lists lacked that were too short to be believed, likewise
    read                  how far the settled bets were read, and of which topic
    seen                  what the last snapshot had seen of all that

Each key begins with the job. Values are JSON, for no other program reads them. Times are Unix seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import orjson

from bridge.snapshots.model import Job, Offsets
from bridge.snapshots.references import Place, References

HOUR_SECONDS: Final = 3_600
"""To the hour it is known when a bet last mentioned something: so seldom is it written again."""
MAX_IDS_OF_EVENT: Final = 20_000
"""Markets, and selections, that are remembered of one event: they are to fit into a record."""
NAMES_PER_RECORD: Final = 10_000


class JobState:
    """Of one job. `records` is what the topic holds, of other jobs too: key → value.

    What no job has written is passed over, and counted in `foreign`: it is learnt again.
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
        """How far the settled bets were read; empty before the first time."""
        self.topic_id: str | None = read["topic"]
        """Of the topic that this was."""
        self._keep_days: float = read["keep"]
        """The bets of so many days were learnt."""
        self._run: int = read["run"]
        """Counts the runs that learnt something."""
        # Without what it counts, or with less, it is of a topic that was made anew meanwhile.
        self._seen: int = min((self._get(b"seen") or {"run": 0})["run"], self._run)
        self._first = not {b"read", b"seen"} <= self._entries.keys()
        """Whether there was no snapshot yet, as far as is known."""
        self._begun = False
        self.newest: int = max((entry["at"] for _, entry in self._in_use()), default=0)
        """The hour of the newest bet that anything is known of; 0 without any."""

    # What bets mention.

    def reads_on(self, topic_id: str | None, keep_days: float) -> bool:
        """Whether the bets are read from `position` on: not those of another topic, nor where names are kept
        for longer than before.
        """
        return bool(self.position) and self.topic_id == topic_id and keep_days <= self._keep_days

    def begin(self) -> None:
        """From now on all that is learnt is new."""
        self._begun = True

    def learn(self, hour: int, references: References) -> None:
        """Take what bets mention that were received in that hour (its beginning)."""
        hour = max(0, hour)  # a record may be without a time
        self.newest = max(self.newest, hour)
        for key in _plain(references):
            self._mention(key, hour, {})
        for number, place in references.events.items():
            added = {
                "place": [place.sport, place.competition, place.country],
                "markets": references.markets.get(number, ()),
                "selections": references.selections.get(number, ()),
            }
            self._mention(b"in-use/event:%d" % number, hour, added)

    def learnt(self, position: Offsets, topic_id: str | None, keep_days: float) -> None:
        """The bets of that topic were read so far, and those of so many days before."""
        self.position, self.topic_id, self._keep_days = dict(position), topic_id, keep_days
        places = {str(partition): offset for partition, offset in sorted(position.items())}
        self._put(b"read", {"position": places, "topic": topic_id, "run": self._run, "keep": keep_days})

    def references(self, recent: float, *, full: bool) -> References:
        """What is new since the last snapshot saw what there was, and in a `full` run what is recent, too.

        `recent` is the moment from which on it is; before the first snapshot nothing else is new.
        """
        first = self._first
        return self._as_mentions(recent if full or first else math.inf, new=not first)

    def in_use(self) -> References:
        """All that is remembered, but for markets and selections: there are millions of them."""
        found = References()
        for key, entry in self._in_use():
            _add(found, key.removeprefix(b"in-use/").decode(), {**entry, "markets": (), "selections": ()})
        return found

    def selections_in_use(self, among: Collection[int]) -> set[int]:
        """Those of these selections that are remembered."""
        found, wanted = set[int](), set(among)
        for key, entry in self._in_use():
            kind, _, number = key.removeprefix(b"in-use/").partition(b":")
            if kind == b"event":
                found |= wanted.intersection(entry["selections"])
            elif kind == b"selection":
                found |= wanted & {int(number)}
        return found

    def forget(self, before: float) -> None:
        """What no bet has mentioned since."""
        for key, entry in self._in_use():
            if entry["at"] + HOUR_SECONDS <= before:
                self._put(key, None)

    def see(self) -> None:
        """A snapshot has seen all that is learnt."""
        self._put(b"seen", {"run": self._run})

    # What the provider still owes, and what it is not believed.

    @property
    def owed(self) -> set[str]:
        """What was asked and not told, such as `markets:77`."""
        return self._names(b"owed/")

    def owe(self, owed: Collection[str]) -> None:
        """This, and nothing else, is owed from now on."""
        self._set_names(b"owed/", owed)

    @property
    def missing(self) -> set[str]:
        """What lists lacked that were too short to be believed, such as `league:9`."""
        return self._names(b"missing/")

    def miss(self, missing: Collection[str]) -> None:
        """This, and nothing else, is missing from now on."""
        self._set_names(b"missing/", missing)

    def changes(self) -> dict[bytes, bytes | None]:
        """Key → value, None for what is there no more, of all that has changed since the last time."""
        found = {self._prefix + key: self._entries.get(key) for key in sorted(self._changed)}
        self._changed.clear()
        return found

    # How it is kept.

    def _names(self, start: bytes) -> set[str]:
        return {name for _, value in self._under(start) for name in orjson.loads(value)}

    def _set_names(self, start: bytes, names: Collection[str]) -> None:
        if set(names) == self._names(start):
            return
        ordered = sorted(names)
        places = range(0, len(ordered), NAMES_PER_RECORD)
        records = {start + b"%d" % n: ordered[place:][:NAMES_PER_RECORD] for n, place in enumerate(places)}
        for key in {key for key, _ in self._under(start)} | records.keys():
            self._put(key, records.get(key))

    def _mention(self, key: bytes, hour: int, added: Mapping[str, Any]) -> None:
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
            self._run += self._begun
            self._begun = False
            new["run"] = self._run
            self._put(key, new)

    def _in_use(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        for key, value in self._under(b"in-use/"):
            yield key, orjson.loads(value)

    def _under(self, start: bytes) -> list[tuple[bytes, bytes]]:
        return [(key, value) for key, value in self._entries.items() if key.startswith(start)]

    def _as_mentions(self, since: float, *, new: bool) -> References:
        found = References()
        for key, entry in self._in_use():
            if entry["at"] + HOUR_SECONDS > since or (new and entry["run"] > self._seen):
                _add(found, key.removeprefix(b"in-use/").decode(), entry)
        return found

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


_NAME: Final = re.compile(
    r"(event|markets|sport|region|league|competitor|selection-template):-?[0-9]{1,19}"
    r"|market-type-template:-?[0-9]{1,19}:-?[0-9]{1,19}|currency:.+",
    re.DOTALL,
)


def _is_sound(key: bytes, value: bytes) -> bool:
    """Whether a job may have written it."""
    try:
        content = orjson.loads(value)
        match key.partition(b"/")[0]:
            case b"in-use":
                _add(References(), key.removeprefix(b"in-use/").decode(), content)
                return _are_whole(content["at"], content["run"])
            case b"owed" | b"missing":
                return all(_NAME.fullmatch(name) for name in content)
            case b"read":
                places = [(int(partition), offset) for partition, offset in content["position"].items()]
                return _are_whole(content["run"], *(x for place in places for x in place)) and (
                    isinstance(content["topic"], str | None) and isinstance(content["keep"], int | float)
                )
            case b"seen":
                return _are_whole(content["run"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return True


def _are_whole(*numbers: object) -> bool:
    return all(type(number) is int and number >= 0 for number in numbers)


def _plain(references: References) -> Iterator[bytes]:
    """The keys of what is remembered without anything else."""
    for kind, numbers in (
        ("sport", references.sports),
        ("region", references.regions),
        ("league", references.leagues),
        ("selection", references.selections.get(None, ())),
    ):
        for number in numbers:
            yield f"in-use/{kind}:{number}".encode()
    for sport, type_ in references.market_types:
        yield b"in-use/market-type:%d:%d" % (sport, type_)
    for symbol in references.currencies:
        yield f"in-use/currency:{symbol}".encode()


def _add(references: References, key: str, entry: Mapping[str, Any]) -> None:
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
        case "sport":
            references.sports.add(int(name))
        case "region":
            references.regions.add(int(name))
        case "league":
            references.leagues.add(int(name))
