"""`bridge currencies` on the real Kafka."""

from __future__ import annotations

from tests.harness import Place
from tests.integration.snapshots import Jobs, Topics, simulated, without_ids

LISTED = {
    "EUR": ("Fiat", 2),
    "GBP": ("Fiat", 2),
    "JPY": ("Fiat", 0),
    "SEK": ("Fiat", 2),
    "USD": ("Fiat", 2),
    "BTC": ("Crypto", 8),
    "ETH": ("Crypto", 18),
    "FREEBET": ("Custom", 2),
}
"""What the provider lists."""
UNLISTED = {"KWD": ("Unknown", 3), "PTS": ("Unknown", 0)}
"""What bets are placed in besides."""
ODD = {"XTS": ("Unknown", 2)}
"""What it lists with a type that the interface does not have."""


def records(found: dict[str, tuple[str, int]]) -> dict[str, dict[str, object]]:
    """The records in the topic, without their snapshots."""
    return {s: {"symbol": s, "type": type_, "precision": places} for s, (type_, places) in found.items()}


async def test_the_list_and_what_bets_use_besides(place: Place) -> None:
    async with simulated(bets=120, odd_currencies=True) as provider:
        jobs, topics = Jobs(place, provider), Topics(place)
        await jobs.fill()
        report = await jobs.published("currencies")
        assert without_ids(topics.present("currencies")) == records(LISTED | UNLISTED | ODD)
        assert {kind: counts["records"] for kind, counts in report["kinds"].items()} == {
            "Fiat": 5,
            "Crypto": 2,
            "Custom": 1,
            "Unknown": 3,
        }
        assert sorted(note.partition(" is listed")[0] for note in report["notes"]) == [
            "XTS",
            "a currency without a symbol",
        ]
        asked = [exchange.target.rpartition("/")[2] for exchange in provider.rest.requests]
        assert asked == [
            "active-currencies",
            *(f"active-currencies?type={type_}" for type_ in (1, 2, 3)),
            "currency-precision?symbol=KWD",
            "currency-precision?symbol=PTS",
        ]
        again = await jobs.run("currencies")
        assert (again.written, again.removed, again.requests) == (0, 0, 4)
