"""Step 4: merges the answers of a run into one record a thing.

The interface gives texts in one language at a time and in all at once. The first text in a language stays, so
the order of requests decides if the provider contradicts itself: lists come first. A text that is missing
from an answer, or blank, removes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

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
from bridge.snapshots.wanted import Task

MAX_LANGUAGES: Final = 10
NOWHERE: Final[Mapping[str, Any]] = {}
"""What a thing belongs to that belongs to nothing."""


def pack(record: Translation) -> bytes:
    """Return a translation in half the memory: hundreds of thousands may wait for the last answer."""
    # orjson may return a small value in a buffer of a kilobyte: this is a copy of the right size.
    return memoryview(orjson.dumps([getattr(record, name) for name in Translation.__slots__])).tobytes()


def unpack(packed: bytes) -> Translation:
    """The inverse of `pack`."""
    return Translation(*orjson.loads(packed))


class Merged:
    """Packed records by key, empty where the `topic` has the record. `language_keys` maps the provider's
    language keys to codes.

    What differs from a language of the task only in case is that language.
    """

    def __init__(
        self,
        task: Task,
        language_keys: Mapping[str, str],
        topic: Callable[[bytes], Translation | None] = lambda _: None,
    ) -> None:
        self._topic, self._languages = topic, task.languages
        self.records: dict[bytes, bytes] = {}
        self.complete: set[bytes] = set()
        """Keys of records answered in all languages at once: a text they lack does not exist."""
        self.fresh: set[bytes] = set()
        """Keys of records that were added to since somebody cleared this."""
        self.languages: Counter[str] = Counter()
        """Language → the number of texts in it."""
        known = *task.languages, *language_keys.values()
        self._codes = {code: code for code in known} | dict(language_keys)
        self._folded = {code.casefold(): code for code in known}
        self._only = frozenset(task.languages) if task.narrowed else None
        # Of a whole run, all that comes along is kept: an event's answer has the names of its competitors.
        self._kinds = frozenset(task.kinds if task.narrowed else KINDS)

    def record(self, key: bytes) -> Translation | None:
        """Return the merged record of a key."""
        found = self.records.get(key)
        return unpack(found) if found else None if found is None else self._topic(key)

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

    def item(self, kind: Kind, item: TranslationItem, belongs: Mapping[str, Any] = NOWHERE) -> bytes | None:
        """Add a text in one language. Returns the key of its record, None if nothing is kept."""
        return self._add(kind, item["id"], {item["language"]: item["translation"]}, belongs)

    def entity(
        self, kind: Kind, entity: EntityTranslation, whole: bool, belongs: Mapping[str, Any] = NOWHERE
    ) -> bytes | None:
        """Add texts in all languages; in some of them if the answer is not `whole`. Returns as `item`."""
        key = self._add(kind, entity["id"], entity["translations"], belongs)
        if key and whole and self.normalize(entity["translations"]):  # without any text it removes none
            self.complete.add(key)
        return key

    def event(self, event: EventTranslations, whole: bool) -> list[int]:
        """Add an event with its sport, region, league and competitors, whose ids are returned."""
        belongs = {f"{kind}_id": event[kind]["id"] for kind in ("sport", "region", "league")}
        members = [competitor["id"] for competitor in event["competitors"]]
        self.entity("event", event["eventTranslation"], whole, {**belongs, "competitor_ids": members})
        self.entity("sport", event["sport"], whole)
        self.entity("region", event["region"], whole)
        self.entity("league", event["league"], whole)
        for competitor in event["competitors"]:
            self.entity("competitor", competitor, whole)
        return members

    def markets(
        self,
        event: int,
        in_all: Iterable[MarketTranslations],
        in_one: Iterable[MarketTranslationItem],
        whole: bool,
    ) -> set[bytes]:
        """Add the markets of an event, in all languages at once and in one; return their keys."""
        keys = set[bytes | None]()
        for market in in_all:
            belongs = {"event_id": event, "market_type_id": market["marketTypeId"]}
            keys.add(self.entity("market", market["marketTranslations"], whole, belongs))
            keys.update([self.entity("selection", x, whole, belongs) for x in market["selections"]])
        for item in in_one:
            belongs = {"event_id": event, "market_type_id": item["marketTypeId"]}
            keys.add(self.item("market", item["market"], belongs))
            keys.update([self.item("selection", x, belongs) for x in item["selections"]])
        return {key for key in keys if key is not None}

    def notes(self, configured: Collection[str], *, all_: bool) -> list[str]:
        """Return notes for people about languages; about those without a text if `all_` was asked for."""
        texts, notes = self.languages, list[str]()
        if others := {x: n for x, n in texts.items() if x not in configured}:
            most = ", ".join(f"{language} ({n:,})" for language, n in sorted(others.items())[:MAX_LANGUAGES])
            notes.append(
                f"texts in languages that are not in api.languages: {most}; if one is another name of a "
                "language there, map it with api.language_keys"
            )
        silent = [x for x in self._languages if x not in texts]
        if silent and texts and all_:
            notes.append(f"no text at all in {', '.join(silent)}: check api.languages and api.language_keys")
        return notes

    def against(self, key: bytes, old: Translation | None, *, removes: bool) -> Translation | None:
        """Return the record of a key, completed from the `old` one of the topic; None if that has it already.

        If it `removes`, then also texts that an answer in all languages lacks.
        """
        new = unpack(self.records[key])
        if old is None or new.supersedes(old):
            return new
        if old.supersedes(new):
            return None
        # One endpoint may give what a thing belongs to, and another not.
        new.complete(replace(old, texts={}) if removes and key in self.complete else old)
        return None if new == old else new

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
        self.fresh.add(key)
        return key

    def _code(self, key: str) -> str:
        # One string a language, not one a text: there may be a million texts.
        if key not in self._codes:
            self._codes[key] = self._folded.get(key.casefold(), key)
        return self._codes[key]
