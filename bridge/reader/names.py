"""The names of what bets were placed on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Self

from bridge.config import Settings, load
from bridge.errors import SchemaError
from bridge.reader.decoding import TRANSLATIONS
from bridge.reader.records import Bet, BetBuilderItem, Market, SettledBetItem
from bridge.reader.source import Source
from bridge.records.message import SkippedRecords
from bridge.registry import Registry

LOOK_SECONDS: Final = 1.0
"""Interval between looks for new names."""
TAKE_SECONDS: Final = 0.5
"""Most time of a look. After a snapshot of very many names it takes several."""


@dataclass(frozen=True, slots=True)
class LegNames:
    """The names of a leg of a bet builder."""

    market: str | None
    selection: str | None


@dataclass(frozen=True, slots=True)
class ItemNames:
    """The names of an item of a bet in one language; None for what has none, or not yet."""

    event: str | None
    competitors: list[str | None]
    sport: str | None
    league: str | None
    region: str | None
    market: str | None
    selection: str | None
    legs: list[LegNames]


class Names:
    """The translations, read to their end and followed from then on.

    Holds the bytes of each name, some 200, besides its key. Not for several threads. Raises as `read`.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        settings = settings or load(None)
        self._values: dict[str, bytes] = {}
        self._recreated = 0
        self._foreign = SkippedRecords()
        self._registry = Registry(settings.registry)
        try:
            self._codec = self._registry.codec("translation")
            with closing(Source(settings, TRANSLATIONS.name, "start", "end")) as whole:
                while not whole.ended:
                    self._take(whole, seconds=LOOK_SECONDS)
            offsets = {place.partition: place.offset for place in whole.cursor.places}
            self._source = Source(settings, TRANSLATIONS.name, offsets, None)
        except BaseException:
            self._registry.close()
            raise
        self._looked_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._values)

    def close(self) -> None:
        """End the client. Must be called."""
        self._source.close()
        self._registry.close()
        self._foreign.log()

    def languages(self) -> Iterator[str]:
        """Yield each language in which something has a name, once, as soon as it is found."""
        found: set[str] = set()
        for value in self._values.values():
            try:
                texts: Mapping[str, str] = self._codec.decode(value)["translations"]
            except SchemaError:
                continue
            yield from texts.keys() - found
            found |= texts.keys()

    def text(self, key: str, language: str) -> str | None:
        """Return a name by the key of its record, such as `sport:11`; None for one that is not there."""
        if time.monotonic() - self._looked_at >= LOOK_SECONDS:
            until = time.monotonic() + TAKE_SECONDS
            while self._take(self._source, seconds=0) and time.monotonic() < until:
                pass
            self._looked_at = time.monotonic()
        if (value := self._values.get(key)) is None:
            return None
        try:
            text: str | None = self._codec.decode(value)["translations"].get(language)
        except SchemaError as error:
            self._foreign.add(error)
            return None
        return text

    def of(self, bet: Bet, language: str) -> list[ItemNames]:
        """Return the names of each item of a bet."""
        return [self._item(item, language) for item in bet.items]

    def _item(self, item: SettledBetItem, language: str) -> ItemNames:
        event = item["event"] and item["event"]["id"]
        return ItemNames(
            event=None if event is None else self.text(f"event:{event}", language),
            competitors=[self.text(f"competitor:{team}", language) for team in self._competitors(event)],
            sport=self.text(f"sport:{item['sportId']}", language),
            league=self.text(f"league:{item['competitionId']}", language),
            region=self.text(f"region:{item['countryId']}", language),
            market=self._market(event, item["market"], language),
            selection=self.text(f"selection:{item['selectionId']}", language),
            legs=[self._leg(event, leg, language) for leg in item["betBuilderItems"] or ()],
        )

    def _leg(self, event: int | None, leg: BetBuilderItem, language: str) -> LegNames:
        return LegNames(
            self._market(event, leg["market"], language),
            self.text(f"selection:{leg['selectionId']}", language),
        )

    def _market(self, event: int | None, market: Market | None, language: str) -> str | None:
        if event is None or market is None:
            return None
        return self.text(f"market:{event}:{market['id']}", language)

    def _competitors(self, event: int | None) -> list[int]:
        value = None if event is None else self._values.get(f"event:{event}")
        try:
            return [] if value is None else self._codec.decode(value)["competitorIds"] or []
        except SchemaError:
            return []

    def _take(self, source: Source, seconds: float) -> int:
        """Take in what comes within these seconds; return how many records."""
        count = 0
        for count, message in enumerate(source.messages(seconds), 1):  # noqa: B007
            if source.recreated != self._recreated:  # not before it has a name, or all would have none
                self._values.clear()
                self._recreated = source.recreated
            key, value = message.key(), message.value()
            if isinstance(key, bytes):
                name = key.decode("utf-8", "replace")
                if value is None:
                    self._values.pop(name, None)
                else:
                    self._values[name] = value
        return count
