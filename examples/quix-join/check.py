"""What the join must print: every settlement of every bet, with its names, and with what it corrects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from examples.truth import RESULTS, Texts, Truth, market

SAID = ("settlementVersion", "betSettlement", "payout")
"""The values that a correction corrects."""


def differences(rows: Sequence[Mapping[str, Any]], truth: Truth) -> Iterator[str]:
    """Yield each bet that is missing, printed twice or not as it must be."""
    lines = {(row["betId"], row["settlementVersion"]): row for row in rows}
    if len(lines) != len(rows):
        yield f"{len(rows) - len(lines)} bets are printed twice"
    before: dict[str, dict[str, Any]] = {}
    for bet in truth.bets:
        wanted = expected(bet, truth)
        identity = wanted["betId"], wanted["settlementVersion"]
        wanted["corrects"] = before.get(identity[0])
        before[identity[0]] = {name: wanted[name] for name in SAID}
        found = compared(lines.pop(identity)) if identity in lines else None
        if found != wanted:
            yield f"bet {identity[0]} version {identity[1]}: {found} instead of {wanted}"
    yield from (f"bet {bet_id} version {version} was never sent" for bet_id, version in lines)


def expected(bet: Mapping[str, Any], truth: Truth) -> dict[str, Any]:
    """Return what is compared of the line for a bet, but `corrects`."""
    return {
        "betId": bet["betId"],
        "settlementVersion": bet["settlementVersion"],
        "betSettlement": RESULTS[bet["betSettlement"]],
        "payout": bet["payout"],
        "selections": [_item(item, truth) for item in bet.get("selections") or ()],
    }


def compared(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is compared of a line."""
    return {
        **{name: row[name] for name in ("betId", *SAID, "corrects")},
        "selections": [
            {
                "names": item["names"],
                "parts": [{"names": part["names"]} for part in item["betBuilderItems"] or ()],
            }
            for item in row["selections"] or ()
        ],
    }


def _item(item: dict[str, Any], truth: Truth) -> dict[str, Any]:
    event = item.get("event")
    names: dict[str, Texts | None] = {
        "event": truth.texts("event", event and event["id"]),
        "sport": truth.texts("sport", item["sportId"]),
        "league": truth.texts("league", item["competitionId"]),
        "region": truth.texts("region", item["countryId"]),
    }
    parts = item.get("betBuilderItems") or ()
    return {
        "names": names | _own(item, item, truth),
        "parts": [{"names": _own(item, part, truth)} for part in parts],
    }


def _own(item: dict[str, Any], part: dict[str, Any], truth: Truth) -> dict[str, Texts | None]:
    return {
        "market": truth.texts("market", market(item, part)),
        "selection": truth.texts("selection", part["selectionId"]),
    }
