"""`bridge currencies` on the real Kafka."""

from __future__ import annotations

from bridge_sandbox.provider.rest.faults import RestFault
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

        fewer = '[{"symbol": "EUR", "type": 1, "precision": 3}, {"symbol": "BTC", "type": 2, "precision": 8}]'
        provider.rest.faults.inject(RestFault(endpoint="active-currencies", times=None, body=fewer))
        shorter = await jobs.run("currencies")
        assert (shorter.written, shorter.removed) == (1, 0)
        present = LISTED | UNLISTED | ODD | {"EUR": ("Fiat", 3)}
        assert without_ids(topics.present("currencies")) == records(present)


async def test_each_failure_leaves_the_last_snapshot(place: Place) -> None:
    async with simulated(bets=120) as provider:
        jobs, topics = Jobs(place, provider, attempts=1), Topics(place)
        await jobs.fill()
        listed, precision = (
            "/api/CurrencyExchange/active-currencies",
            "/api/CurrencyExchange/currency-precision",
        )
        provider.rest.faults.inject(RestFault(endpoint="currency-precision", times=None, status=403))
        partial = await jobs.command("currencies")
        assert partial.returncode == 4, partial.stderr
        assert f"error: the provider gives no right to {precision} (403)" in partial.stderr
        assert without_ids(topics.present("currencies")) == records(LISTED)
        provider.rest.faults.clear()
        for target, fault in (
            (listed, RestFault(endpoint="active-currencies", status=500)),
            (f"{listed}?type=3", RestFault(endpoint="active-currencies", nth=4, body='[{"symbol": "EUR"}]')),
        ):
            provider.rest.faults.inject(fault)
            failed = await jobs.command("currencies", "--full")
            assert (failed.returncode, failed.stdout) == (10, ""), failed.stderr
            assert f"error: GET {target} " in failed.stderr
            (snapshot,) = topics.snapshots("currencies")
            assert without_ids(topics.at_ends("currencies", snapshot)) == records(LISTED)
            assert without_ids(topics.present("currencies")) == records(LISTED)
