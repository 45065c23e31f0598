"""Merges the answers of a run into one record a thing, and the records with those of the topic.

The interface gives texts in one language at a time and in all at once. The first text in a language stays, so
the order of requests decides if the provider contradicts itself: lists come first. A text that is missing
from an answer, or blank, removes nothing.

What a run did not ask about stays in the topic. A text is removed only if everything was fetched again and no
answer had it; a record only if its whole list was read and the provider no longer knows it, or if its event
is forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from bridge.config.api import KINDS, Kind
from bridge.rest.endpoints import (
    EntityTranslation,
    EventTranslations,
    MarketTranslationItem,
    MarketTranslations,
    TranslationItem,
)
from bridge.snapshots.model import Texts, Translation, key_of
from bridge.snapshots.plan import Scope


def pack(record: Translation) -> bytes:
    """Return a translation in half the memory: hundreds of thousands wait until the last answer is there."""
    # orjson may return a small value in a buffer of a kilobyte: this is a copy of the right size.
    return memoryview(orjson.dumps([getattr(record, name) for name in Translation.__slots__])).tobytes()


def unpack(packed: bytes) -> Translation:
    """The inverse of `pack`."""
    return Translation(*orjson.loads(packed))


class MergedNames:
    """Packed records by key. `language_keys` maps the provider's language keys to codes.

    What differs from a language of the `scope` only in case is that language.
    """

    def __init__(self, scope: Scope, language_keys: Mapping[str, str]) -> None:
        self.records: dict[bytes, bytes] = {}
        self.complete_keys: set[bytes] = set()
        """Keys of records answered in all languages at once: a text they lack does not exist."""
        self.languages: Counter[str] = Counter()
        """Language → the number of texts in it."""
        known = *scope.languages, *language_keys.values()
        self._codes = {code: code for code in known} | dict(language_keys)
        self._folded = {code.casefold(): code for code in known}
        self._only = frozenset(scope.languages) if scope.narrowed else None
        # Of a whole run, all that comes along is kept: an event's answer has the names of its competitors.
        self._kinds = scope.kinds if scope.narrowed else frozenset(KINDS)

    def record(self, key: bytes) -> Translation | None:
        """Return the merged record of a key."""
        found = self.records.get(key)
        return None if found is None else unpack(found)

    def lacks(self, kind: Kind, number: int, languages: Iterable[str]) -> bool:
        """Return whether a thing without a parent is unknown or lacks one of the languages."""
        found = self.record(key_of(kind, number))
        return found is None or any(language not in found.texts for language in languages)

    def normalize(self, texts: Texts) -> Texts:
        """Replace the provider's language keys by codes and drop blank texts."""
        keys = list(texts)
        # Of two keys for one language the code itself wins, else the first by name.
        if any(self._code(key) != key for key in keys):
            keys.sort(reverse=True)
            keys.sort(key=lambda key: self._code(key) == key)
        return {self._code(key): texts[key] for key in keys if texts[key].strip()}

    def item(self, kind: Kind, item: TranslationItem, **belongs: Any) -> None:
        """Add a text in one language."""
        self._add(kind, item["id"], {item["language"]: item["translation"]}, belongs)

    def entity(self, kind: Kind, entity: EntityTranslation, *, complete: bool = True, **belongs: Any) -> None:
        """Add texts in all languages; in some of them if the answer is not `complete`."""
        key = self._add(kind, entity["id"], entity["translations"], belongs)
        if key and complete and self.normalize(entity["translations"]):  # without any text it removes none
            self.complete_keys.add(key)

    def event(self, event: EventTranslations, *, complete: bool = True) -> None:
        """Add an event with its sport, region, league and competitors."""
        self.entity(
            "event",
            event["eventTranslation"],
            complete=complete,
            sport_id=event["sport"]["id"],
            region_id=event["region"]["id"],
            league_id=event["league"]["id"],
            competitor_ids=[competitor["id"] for competitor in event["competitors"]],
        )
        self.entity("sport", event["sport"], complete=complete)
        self.entity("region", event["region"], complete=complete)
        self.entity("league", event["league"], complete=complete)
        for competitor in event["competitors"]:
            self.entity("competitor", competitor, complete=complete)

    def all_markets(
        self, event_id: int, markets: Sequence[MarketTranslations], *, complete: bool = True
    ) -> None:
        """Add the markets of an event in all languages."""
        for market in markets:
            belongs = {"event_id": event_id, "market_type_id": market["marketTypeId"]}
            self.entity("market", market["marketTranslations"], complete=complete, **belongs)
            for selection in market["selections"]:
                self.entity("selection", selection, complete=complete, **belongs)

    def markets(self, event_id: int, markets: Sequence[MarketTranslationItem]) -> None:
        """Add the markets of an event in one language."""
        for market in markets:
            belongs = {"event_id": event_id, "market_type_id": market["marketTypeId"]}
            self.item("market", market["market"], **belongs)
            for selection in market["selections"]:
                self.item("selection", selection, **belongs)

    def _add(self, kind: Kind, number: int, texts: Texts, belongs: Mapping[str, Any]) -> bytes | None:
        """Merge texts into their record and return its key; None if nothing is kept."""
        if kind not in self._kinds:
            return None
        texts = self.normalize(texts)
        if self._only is not None:
            texts = {language: text for language, text in texts.items() if language in self._only}
        if not texts and kind != "event":  # an event without a name still has its competitors
            return None
        self.languages.update(texts.keys())
        new = Translation(kind, number, texts, **belongs)
        key = new.key
        if found := self.record(key):
            if found.supersedes(new):
                return None
            if not new.supersedes(found):
                found.complete(new)
                new = found
        self.records[key] = pack(new)
        return key

    def _code(self, key: str) -> str:
        # One string a language, not one a text: there may be a million texts.
        if key not in self._codes:
            self._codes[key] = self._folded.get(key.casefold(), key)
        return self._codes[key]


Read = Callable[[bytes], Translation | None]
"""Returns the topic's record of a key; None if there is none that can be read."""


def drop_unchanged(records: dict[bytes, bytes], read: Read, complete_keys: Container[bytes]) -> None:
    """Complete packed `records` from the topic, and drop those that have not changed.

    `complete_keys` are those answered in all languages: a text that they lack is removed.
    """
    for key in list(records):
        if (old := read(key)) is None:
            continue
        new = unpack(records[key])
        if old.supersedes(new):
            del records[key]
            continue
        if new.supersedes(old):
            continue
        # One endpoint may give what a thing belongs to, and another not.
        new.complete(replace(old, texts={}) if key in complete_keys else old)
        if new == old:
            del records[key]
        else:
            records[key] = pack(new)


def forgotten(
    present: Iterable[bytes],
    read: Read,
    events: Container[int],
    selections: Callable[[Collection[int]], set[int]],
) -> set[bytes]:
    """Return the keys of records that belong to no event and no selection that bets mention.

    `events` are the mentioned events; `selections` returns the mentioned ones among some selections.
    """
    found: set[bytes] = set()
    unclear: dict[bytes, int] = {}
    for key in present:
        kind, *ids = key.split(b":")
        match kind:
            case b"event" | b"market" if int(ids[0]) not in events:
                found.add(key)
            case b"selection-template":
                unclear[key] = int(ids[0])
            case b"selection" if (record := read(key)) is not None and record.event_id not in events:
                unclear[key] = int(ids[0])
    used = selections(set(unclear.values()))
    return found | {key for key, number in unclear.items() if number not in used}
