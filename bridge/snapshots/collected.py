"""All answers of a run, merged into one record a thing.

Both forms of the interface end here: one language at a time, and all at once. What was said first about a
language stands, so the order of asking decides where the provider contradicts itself: whole lists are asked
first. A text that is missing from an answer, or blank, takes nothing away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bridge.snapshots.records import Kind, Texts, Translation, key_of
from bridge.snapshots.requests import (
    EntityTranslation,
    EventTranslations,
    MarketTranslationItem,
    MarketTranslations,
    TranslationItem,
)
from bridge.snapshots.wants import Scope


class Collected:
    """Records by key. `language_keys` says what a language is called here: provider's key → code."""

    def __init__(self, scope: Scope, language_keys: Mapping[str, str]) -> None:
        self.records: dict[bytes, Translation] = {}
        self.languages: Counter[str] = Counter()
        """Language → how many texts were given in it."""
        self._scope = scope
        self._keys = language_keys
        self._only = frozenset(scope.languages) if scope.narrowed else None

    def lacks(self, kind: Kind, number: int, languages: Iterable[str]) -> bool:
        """Whether one of the languages is missing for a thing that is known by its id alone."""
        found = self.records.get(key_of(kind, number))
        return found is None or any(language not in found.texts for language in languages)

    def codes(self, texts: Texts) -> set[str]:
        """The languages of a map of all of them, by their codes here; one without a text is none."""
        return {self._keys.get(key, key) for key, text in texts.items() if text.strip()}

    def items(self, kind: Kind, items: Iterable[TranslationItem], **belongs: Any) -> None:
        """Texts in one language."""
        for item in items:
            self._add(kind, item["id"], {item["language"]: item["translation"]}, belongs)

    def entity(self, kind: Kind, entity: EntityTranslation, **belongs: Any) -> None:
        """Texts in all languages."""
        self._add(kind, entity["id"], entity["translations"], belongs)

    def event(self, event: EventTranslations) -> None:
        """An event, and the names of what it belongs to."""
        competitors = tuple(competitor["id"] for competitor in event["competitors"])
        self.entity(
            "event",
            event["eventTranslation"],
            sport_id=event["sport"]["id"],
            region_id=event["region"]["id"],
            league_id=event["league"]["id"],
            competitor_ids=competitors,
        )
        self.entity("sport", event["sport"])
        self.entity("region", event["region"])
        self.entity("league", event["league"])
        for competitor in event["competitors"]:
            self.entity("competitor", competitor)

    def all_markets(self, event_id: int, markets: Sequence[MarketTranslations]) -> None:
        """The markets of an event in all languages."""
        for market in markets:
            belongs = {"event_id": event_id, "market_type_id": market["marketTypeId"]}
            self.entity("market", market["marketTranslations"], **belongs)
            for selection in market["selections"]:
                self.entity("selection", selection, **belongs)

    def markets(self, event_id: int, markets: Sequence[MarketTranslationItem]) -> None:
        """The markets of an event in one language."""
        for market in markets:
            belongs = {"event_id": event_id, "market_type_id": market["marketTypeId"]}
            self.items("market", [market["market"]], **belongs)
            self.items("selection", market["selections"], **belongs)

    def _add(self, kind: Kind, number: int, texts: Texts, belongs: Mapping[str, Any]) -> None:
        if kind not in self._scope.kinds:
            return
        named = {self._keys.get(key, key): text for key, text in texts.items() if text.strip()}
        if self._only is not None:
            named = {language: text for language, text in named.items() if language in self._only}
        if not named and kind != "event":  # an event without a name still says who takes part
            return
        self.languages.update(named.keys())
        new = Translation(kind, number, named, **belongs)
        found = self.records.setdefault(new.key, new)
        if found is not new:
            for language, text in named.items():
                found.texts.setdefault(language, text)
            for name, value in belongs.items():
                if getattr(found, name) is None:
                    setattr(found, name, value)
