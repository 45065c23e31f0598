"""The names of what was bet on, taken from the topic of translations as any reader of it would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LANGUAGE = "en"


class Names:
    """Key → texts, as the records say that have arrived so far."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._teams: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def take(self, key: str, record: Mapping[str, Any] | None) -> None:
        """A record of the topic; None for a tombstone."""
        if record is None:
            self._texts.pop(key, None)
            return
        self._texts[key] = record["translations"].get(LANGUAGE, "")
        if record["competitorIds"]:
            self._teams[key] = record["competitorIds"]

    def bet_on(self, bet: Mapping[str, Any]) -> tuple[str, str]:
        """Who plays, and market and selection, of a bet's first item; `+2` says of more items."""
        items = bet["selections"] or []
        if not items:
            return "—", ""
        item, more = items[0], f"  +{len(items) - 1}" if len(items) > 1 else ""
        picked = self._market(item), self._texts.get(f"selection:{item['selectionId']}")
        return (self._event(item["event"]) or "…") + more, " · ".join(part for part in picked if part)

    def _event(self, event: Mapping[str, Any] | None) -> str | None:
        """Who plays; of a race or an outright, which has many, the name of the event.

        Until the topic has it, what the bet itself calls the event.
        """
        if event is None:
            return None
        key = f"event:{event['id']}"
        teams = [self._texts.get(f"competitor:{team}") for team in self._teams.get(key, ())]
        if len(teams) == 2 and all(teams):
            return " – ".join(team for team in teams if team)
        return self._texts.get(key) or event["name"]

    def _market(self, item: Mapping[str, Any]) -> str | None:
        if item["event"] is None or item["market"] is None:
            return None
        return self._texts.get(f"market:{item['event']['id']}:{item['market']['id']}")
