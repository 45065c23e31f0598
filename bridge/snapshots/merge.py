"""All answers of a run, merged into one record a thing.

Both forms of the interface end here: one language at a time, and all at once. What was said first about a
language stands, so the order of asking decides where the provider contradicts itself: whole lists are asked
first. A text that is missing from an answer, or blank, takes nothing away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from bridge.rest.endpoints import (
    EntityTranslation,
    EventTranslations,
    MarketTranslationItem,
    MarketTranslations,
    TranslationItem,
)
from bridge.snapshots.model import KINDS, Counts, Kind, Texts, Translation, key_of, kind_of
from bridge.snapshots.plan import Scope


class CompactTranslation:
    """A translation that is not worked on; what it says is unpacked each time."""

    __slots__ = ("_packed",)

    def __init__(self, record: Translation) -> None:
        packed = orjson.dumps([getattr(record, name) for name in Translation.__slots__])
        # What orjson returns may sit in a kilobyte that was taken for it: this is a copy of the right size.
        self._packed = memoryview(packed).tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompactTranslation) and self.unpack() == other.unpack()

    def unpack(self) -> Translation:
        """What was packed."""
        record = Translation(*orjson.loads(self._packed))
        if record.competitor_ids is not None:
            record.competitor_ids = tuple(record.competitor_ids)
        return record

    @property
    def key(self) -> bytes:
        """The key of its record."""
        return self.unpack().key

    @property
    def asked_as(self) -> str:
        """The name of what is asked about to learn it."""
        return self.unpack().asked_as

    def to_avro(self, snapshot_id: str) -> dict[str, Any]:
        """The datum of the Avro record `Translation`, changed in that snapshot."""
        return self.unpack().to_avro(snapshot_id)


class MergedNames:
    """Records by key. `language_keys` says what a language is called here: provider's key → code."""

    def __init__(self, scope: Scope, language_keys: Mapping[str, str]) -> None:
        self.records: dict[bytes, CompactTranslation] = {}
        self.whole: set[bytes] = set()
        """The keys of those that were told in all languages at once: what they lack, nobody has."""
        self.languages: Counter[str] = Counter()
        """Language → how many texts were given in it."""
        self._scope = scope
        self._codes = dict(language_keys)
        self._renames = bool(language_keys)
        self._only = frozenset(scope.languages) if scope.narrowed else None

    def record(self, key: bytes) -> Translation | None:
        """What was told of a thing."""
        found = self.records.get(key)
        return None if found is None else found.unpack()

    def lacks(self, kind: Kind, number: int, languages: Iterable[str]) -> bool:
        """Whether one of the languages is missing for a thing that is known by its id alone."""
        found = self.record(key_of(kind, number))
        return found is None or any(language not in found.texts for language in languages)

    def named(self, texts: Texts) -> Texts:
        """By the codes of the languages here; a blank text is none."""
        keys = list(texts)
        if self._renames:  # of two keys for one language the code itself counts, else the first by name
            keys.sort(reverse=True)
            keys.sort(key=lambda key: self._code(key) == key)
        return {self._code(key): texts[key] for key in keys if texts[key].strip()}

    def item(self, kind: Kind, item: TranslationItem, **belongs: Any) -> None:
        """A text in one language."""
        self._add(kind, item["id"], {item["language"]: item["translation"]}, belongs)

    def entity(self, kind: Kind, entity: EntityTranslation, *, whole: bool = True, **belongs: Any) -> None:
        """Texts in all languages; in some of them where the answer was not `whole`."""
        key = self._add(kind, entity["id"], entity["translations"], belongs)
        if key and whole and self.named(entity["translations"]):  # one without any name takes none away
            self.whole.add(key)

    def event(self, event: EventTranslations, *, whole: bool = True) -> None:
        """An event, and the names of what it belongs to."""
        competitors = tuple(competitor["id"] for competitor in event["competitors"])
        self.entity(
            "event",
            event["eventTranslation"],
            whole=whole,
            sport_id=event["sport"]["id"],
            region_id=event["region"]["id"],
            league_id=event["league"]["id"],
            competitor_ids=competitors,
        )
        self.entity("sport", event["sport"], whole=whole)
        self.entity("region", event["region"], whole=whole)
        self.entity("league", event["league"], whole=whole)
        for competitor in event["competitors"]:
            self.entity("competitor", competitor, whole=whole)

    def all_markets(
        self, event_id: int, markets: Sequence[MarketTranslations], *, whole: bool = True
    ) -> None:
        """The markets of an event in all languages."""
        for market in markets:
            belongs = {"event_id": event_id, "market_type_id": market["marketTypeId"]}
            self.entity("market", market["marketTranslations"], whole=whole, **belongs)
            for selection in market["selections"]:
                self.entity("selection", selection, whole=whole, **belongs)

    def markets(self, event_id: int, markets: Sequence[MarketTranslationItem]) -> None:
        """The markets of an event in one language."""
        for market in markets:
            belongs = {"event_id": event_id, "market_type_id": market["marketTypeId"]}
            self.item("market", market["market"], **belongs)
            for selection in market["selections"]:
                self.item("selection", selection, **belongs)

    def _add(self, kind: Kind, number: int, texts: Texts, belongs: Mapping[str, Any]) -> bytes | None:
        """The key of its record; None when there is nothing to tell."""
        if kind not in self._scope.kinds:
            return None
        named = self.named(texts)
        if self._only is not None:
            named = {language: text for language, text in named.items() if language in self._only}
        if not named and kind != "event":  # an event without a name still says who takes part
            return None
        self.languages.update(named.keys())
        new = Translation(kind, number, named, **belongs)
        key = new.key
        if found := self.record(key):
            if found.supersedes(new):
                return None
            if not new.supersedes(found):
                found.complete(new)
                new = found
        self.records[key] = CompactTranslation(new)
        return key

    def _code(self, key: str) -> str:
        # One string a language, not one a text: there may be a million texts.
        return self._codes.setdefault(key, key)


Read = Callable[[bytes], Translation | None]
"""Reads the record of a key; None where there is none, or none that can be read."""


def merge(collected: dict[bytes, CompactTranslation], read: Read, whole: Container[bytes]) -> None:
    """Leave in `collected` what is new or changed, completed by what the topic has.

    `whole` has the keys of those that were told in all languages: a text that they lack is gone.
    """
    for key in list(collected):
        if (old := read(key)) is None:
            continue
        new = collected[key].unpack()
        if old.supersedes(new):
            del collected[key]
            continue
        if new.supersedes(old):
            continue
        # What a thing belongs to may be told by one endpoint and not by another.
        new.complete(replace(old, texts={}) if key in whole else old)
        if new == old:
            del collected[key]
        else:
            collected[key] = CompactTranslation(new)


def forgotten(
    present: Iterable[bytes],
    read: Read,
    events: Container[int],
    selections: Callable[[Collection[int]], set[int]],
) -> set[bytes]:
    """The keys of what belongs to no event and no selection that bets mention.

    `events` are those; `selections` says which of some are.
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


def count(
    present: Collection[bytes], written: Collection[bytes], gone: Collection[bytes]
) -> dict[str, Counts]:
    """Kind → how many records there are, were written and were removed."""
    counts: dict[str, Counts] = {kind: Counts() for kind in KINDS}

    def of(key: bytes) -> Counts:
        return counts.setdefault(kind_of(key), Counts())

    for key in present:
        of(key).records += 1
    for key in written:
        of(key).written += 1
        of(key).records += key not in present
    for key in gone:
        of(key).removed += 1
        of(key).records -= 1
    return counts
