"""What a snapshot job remembers from one run to the next, in a compacted topic of its own.

    in-use/event:77       what bets mention, and when they last did: nobody has to read old bets again
    owed/0                what the provider did not tell when it was asked, by ten thousand
    short/league          lists that came back so short in a full run that nothing was believed to be gone
    read                  how far the settled bets were read, and of which topic
    seen                  what the last snapshot had seen of all that

Each key begins with the job. Values are JSON, for no other program reads them. Times are Unix seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from bridge.snapshots.mentions import Mentions, Place
from bridge.snapshots.records import Job, Offsets

HOUR_SECONDS: Final = 3_600
"""To the hour it is known when a bet last mentioned something: so seldom is it written again."""
MOST_IDS_OF_EVENT: Final = 20_000
"""Markets, and selections, that are remembered of one event: they are to fit into a record."""
OWED_IN_RECORD: Final = 10_000


class State:
    """Of one job. `records` is what the topic holds, of other jobs too: key → value."""

    def __init__(self, job: Job, records: Mapping[bytes, bytes]) -> None:
        self._prefix = f"{job}/".encode()
        cut = len(self._prefix)
        self._entries = {key[cut:]: value for key, value in records.items() if key.startswith(self._prefix)}
        self._changed: set[bytes] = set()
        read = self._get(b"read") or {}
        self.position: Offsets = {int(p): offset for p, offset in read.get("position", {}).items()}
        """How far the settled bets were read; empty before the first time."""
        self.topic_id: str | None = read.get("topic")
        """Of the topic that this was."""
        self._run: int = read.get("run", 0)
        """Counts how often bets were read."""
        self._seen: int = (self._get(b"seen") or {}).get("run", 0)

    # What bets mention.

    def begin(self) -> None:
        """From now on all that is learnt is new."""
        self._run += 1

    def learn(self, hour: int, mentions: Mentions) -> None:
        """Take what bets mention that were received in that hour (its beginning)."""
        for key in _plain(mentions):
            self._mention(key, hour, {})
        for number, place in mentions.events.items():
            added = {
                "place": [place.sport, place.competition, place.country],
                "markets": mentions.markets.get(number, ()),
                "selections": mentions.selections.get(number, ()),
            }
            self._mention(b"in-use/event:%d" % number, hour, added)

    def learnt(self, position: Offsets, topic_id: str | None) -> None:
        """The bets of that topic were read so far."""
        self.position, self.topic_id = dict(position), topic_id
        self._put(b"read", {"position": self.position, "topic": topic_id, "run": self._run})

    @property
    def newest(self) -> int:
        """The hour of the newest bet that anything is known of; 0 without any."""
        return max((entry["at"] for _, entry in self._in_use()), default=0)

    def mentions(self, recent: float, *, full: bool) -> Mentions:
        """What is new since the last snapshot saw what there was, and in a `full` run what is recent, too.

        `recent` is the moment from which on it is; before the first snapshot nothing else is new.
        """
        first = self._seen == 0
        return self._as_mentions(recent if full or first else math.inf, new=not first)

    def in_use(self) -> Mentions:
        """All that is remembered."""
        return self._as_mentions(0, new=False)

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
        return {name for key, value in self._under(b"owed/") for name in orjson.loads(value)}

    def owe(self, owed: set[str]) -> None:
        """This, and nothing else, is owed from now on."""
        if owed == self.owed:
            return
        names = sorted(owed)
        starts = range(0, len(names), OWED_IN_RECORD)
        records = {b"owed/%d" % n: names[start:][:OWED_IN_RECORD] for n, start in enumerate(starts)}
        for key in {key for key, _ in self._under(b"owed/")} | records.keys():
            self._put(key, records.get(key))

    @property
    def shrunk_before(self) -> set[str]:
        """Lists that the last full run found to be so short that it believed nothing of theirs to be gone."""
        return {key.partition(b"/")[2].decode() for key, _ in self._under(b"short/")}

    def shrunk(self, lists: set[str]) -> None:
        """These, and no others, a full run has found so."""
        for kind in self.shrunk_before ^ lists:
            self._put(b"short/" + kind.encode(), {} if kind in lists else None)

    def changes(self) -> dict[bytes, bytes | None]:
        """Key → value, None for what is there no more, of all that has changed since the last time."""
        found = {self._prefix + key: self._entries.get(key) for key in sorted(self._changed)}
        self._changed.clear()
        return found

    # How it is kept.

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
            more = sorted(set(value) - ids)[: max(0, MOST_IDS_OF_EVENT - len(ids))]
            if more or name not in new:
                new[name] = [*new.get(name, ()), *more]
            changed = changed or bool(more)
        if changed:
            new["run"] = self._run
            self._put(key, new)

    def _in_use(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        for key, value in self._under(b"in-use/"):
            yield key, orjson.loads(value)

    def _under(self, start: bytes) -> list[tuple[bytes, bytes]]:
        return [(key, value) for key, value in self._entries.items() if key.startswith(start)]

    def _as_mentions(self, since: float, *, new: bool) -> Mentions:
        found = Mentions()
        for key, entry in self._in_use():
            if entry["at"] + HOUR_SECONDS > since or (new and entry["run"] > self._seen):
                _add(found, key.removeprefix(b"in-use/").decode(), entry)
        return found

    def _get(self, key: bytes) -> dict[str, Any] | None:
        value = self._entries.get(key)
        return None if value is None else orjson.loads(value)

    def _put(self, key: bytes, content: dict[str, Any] | list[str] | None) -> None:
        self._changed.add(key)
        if content is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)


def _is_ours(key: bytes, value: bytes) -> bool:
    """Whether a job wrote it. All else is as if it were not there: it is learnt again."""
    try:
        content = orjson.loads(value)
    except ValueError:
        return False
    if key.startswith(b"owed/"):
        return isinstance(content, list)
    return isinstance(content, dict) and (not key.startswith(b"in-use/") or {"at", "run"} <= content.keys())


def _plain(mentions: Mentions) -> Iterator[bytes]:
    """The keys of what is remembered without anything else."""
    for kind, numbers in (
        ("sport", mentions.sports),
        ("region", mentions.regions),
        ("league", mentions.leagues),
        ("selection", mentions.selections.get(None, ())),
    ):
        for number in numbers:
            yield f"in-use/{kind}:{number}".encode()
    for sport, type_ in mentions.market_types:
        yield b"in-use/market-type:%d:%d" % (sport, type_)
    for symbol in mentions.currencies:
        yield f"in-use/currency:{symbol}".encode()


def _add(mentions: Mentions, key: str, entry: Mapping[str, Any]) -> None:
    kind, _, name = key.partition(":")
    match kind:
        case "currency":
            mentions.currencies.add(name)
        case "market-type":
            sport, type_ = name.split(":")
            mentions.market_types.add((int(sport), int(type_)))
        case "event":
            number = int(name)
            mentions.events[number] = Place(*entry["place"])
            if markets := entry["markets"]:
                mentions.markets[number] = set(markets)
            if selections := entry["selections"]:
                mentions.selections[number] = set(selections)
        case "selection":
            mentions.selections.setdefault(None, set()).add(int(name))
        case "sport":
            mentions.sports.add(int(name))
        case "region":
            mentions.regions.add(int(name))
        case "league":
            mentions.leagues.add(int(name))
