"""What the simulated provider published: the bets and names that an engine's output is compared with."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from bridge_sandbox.demo.verify import RESULTS, micros
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.stream import Published
from bridge_sandbox.provider.world.catalogue import Known

__all__ = ["RESULTS", "Texts", "Truth", "market", "micros"]

Texts = dict[str, str]
"""Language → text."""


@dataclass(frozen=True)
class Truth:
    """All bets and names of a simulated provider."""

    bets: list[dict[str, Any]]
    """Each settlement as the provider sent it, in order. What is null may be absent."""
    _texts: dict[tuple[str, Any], Texts]

    @classmethod
    def of(cls, provider: Simulator) -> Self:
        """Return what it has published until now, and its current names."""
        return cls.made(provider.published(), provider.rest.catalogue.truth())

    @classmethod
    def made(cls, published: Iterable[Published], known: Iterable[Known]) -> Self:
        """Return the truth of these messages and entities. A message without a bet does not count."""
        bets = [json.loads(message.body)["data"] for message in published if message.bet_id is not None]
        return cls(bets, {_key(thing): {str(x): text for x, text in thing.texts.items()} for thing in known})

    @property
    def last(self) -> dict[str, dict[str, Any]]:
        """The last settlement of each bet, by betId."""
        return {bet["betId"]: bet for bet in self.bets}

    def texts(self, kind: str, number: Any) -> Texts | None:
        """Return an entity's name in every language; None without a number.

        A market's number is (id of the event, id of the market), because its id is one within the event.
        """
        return None if number is None else self._texts[kind, number]

    def text(self, kind: str, number: Any, language: str = "en") -> str | None:
        """Return the same in one language."""
        texts = self.texts(kind, number)
        return None if texts is None else texts[language]


def market(item: dict[str, Any], part: dict[str, Any]) -> tuple[int, int] | None:
    """Return the number of the market of an item's part, or of the item itself; None without one."""
    event, found = item.get("event"), part.get("market")
    return (event["id"], found["id"]) if event and found else None


def _key(thing: Known) -> tuple[str, Any]:
    return thing.kind, (thing.relations["eventId"], thing.id) if thing.kind == "market" else thing.id
