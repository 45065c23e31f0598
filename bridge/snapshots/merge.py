"""All answers of a run, merged into one record a thing.

Both forms of the interface end here: one language at a time, and all at once. What was said first about a
language stands, so the order of asking decides where the provider contradicts itself: whole lists are asked
first. A text that is missing from an answer, or blank, takes nothing away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bridge.rest.endpoints import (
    EntityTranslation,
    EventTranslations,
    MarketTranslationItem,
    MarketTranslations,
    TranslationItem,
)
from bridge.snapshots.model import Kind, Texts, Translation, key_of
from bridge.snapshots.packed import CompactTranslation
from bridge.snapshots.plan import Scope


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
