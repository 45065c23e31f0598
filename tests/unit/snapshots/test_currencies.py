"""Currencies: the provider's list, and the precision of others that bets use."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.errors import ApiError, Forbidden
from bridge.snapshots.currencies import TYPES, Currencies
from bridge.snapshots.model import Counts, Currency
from bridge.snapshots.wanted import Estimate
from bridge_sandbox.provider.world.currencies import ACTIVE, UNLISTED
from tests.unit.snapshots.world import Provider, Topic, api, at_the_end, mention, translate, written

LIST = "/api/CurrencyExchange/active-currencies"
PRECISION = "/api/CurrencyExchange/currency-precision"
USED = mention(currencies=["EUR", "KWD", "PTS"])
LISTED = {str(c.symbol): Currency(str(c.symbol), TYPES[c.type], c.precision) for c in ACTIVE}
AS_LISTED = [{"symbol": c.symbol, "type": c.type, "precision": c.precision} for c in ACTIVE]
PTS = {"symbol": "PTS", "type": 3, "precision": 1}
EUR = {"symbol": "EUR", "type": 1, "precision": 2}


def published(topic: Topic) -> dict[str, Currency]:
    return {symbol.decode(): topic.currency(symbol.decode()) for symbol in topic}


async def test_each_endpoint_has_what_the_other_lacks() -> None:
    provider, found = Provider(), Topic("currencies")
    outcome = await translate(provider, found, USED)
    unlisted = {symbol: Currency(symbol, "Unknown", precision) for symbol, precision in UNLISTED.items()}
    assert published(found) == LISTED | unlisted
    assert provider.asked() == {"active-currencies": 4, "currency-precision": 2}
    assert outcome.counts == {
        "Fiat": Counts(5, 5),
        "Crypto": Counts(2, 2),
        "Custom": Counts(1, 1),
        "Unknown": Counts(2, 2),
    }
    assert (outcome.forbidden, outcome.notes) == ((), [])


async def test_oddities_are_reported_and_the_rest_is_published() -> None:
    provider, found = Provider(odd_currencies=True), Topic("currencies")
    outcome = await translate(provider, found, mention())
    assert published(found) == LISTED | {"XTS": Currency("XTS", "Unknown", 2)}
    assert outcome.notes == [
        "a currency without a symbol is listed (type 1): it has no key and is left out",
        "XTS is listed with the unknown type 9: it is published as Unknown",
    ]


async def test_a_currency_that_is_listed_no_more_is_removed() -> None:
    provider, found = Provider(), Topic("currencies")
    await translate(provider, found, USED)
    before = published(found)
    provider.answers("active-currencies", [{"symbol": "SEK", "type": 1, "precision": 2}])
    for full in (False, True):
        outcome = await translate(provider, found, mention(currencies=["EUR"]), full=full)
        assert (outcome.written, outcome.removed, published(found)) == ({}, set(), before)
        assert any("the list of currencies lacks 7 of its former 8" in note for note in outcome.notes)
    outcome = await translate(provider, found, mention(currencies=["EUR"]), full=True)
    assert written(outcome) == {"EUR"}
    assert outcome.removed == {s.encode() for s in LISTED.keys() - {"SEK", "EUR"}}
    assert published(found) == {
        "SEK": LISTED["SEK"],
        "EUR": Currency("EUR", "Unknown", 2),
        "KWD": Currency("KWD", "Unknown", 3),
        "PTS": Currency("PTS", "Unknown", 0),
    }
    assert outcome.counts["Fiat"] == Counts(records=1, removed=3)
    assert outcome.counts["Unknown"] == Counts(records=3, written=1)


async def test_what_only_the_list_of_a_type_has_counts_and_what_it_says_otherwise_is_reported() -> None:
    provider, found = Provider(), Topic("currencies")
    provider.answers("active-currencies", [{**EUR, "precision": 3}], times=1)
    outcome = await translate(provider, found, mention())
    assert published(found) == LISTED | {"EUR": Currency("EUR", "Fiat", 3)}
    assert outcome.notes == [
        "EUR is listed in two ways: Fiat, precision 3, which is published, and Fiat, precision 2"
    ]


async def test_a_currency_that_becomes_listed_gets_its_type() -> None:
    provider, found = Provider(), Topic("currencies")
    await translate(provider, found, USED)
    provider.answers("active-currencies", [*AS_LISTED, PTS])
    outcome = await translate(provider, found, USED, full=True)
    assert written(outcome) == {"PTS"}
    assert found.currency("PTS") == Currency("PTS", "Custom", 1)


async def test_without_a_right_to_the_list_nothing_of_it_is_touched() -> None:
    found = Topic("currencies")
    await translate(Provider(), found, mention(currencies=["KWD"]))
    provider = Provider(forbidden={"active-currencies"})
    outcome = await translate(provider, found, USED, full=True)
    assert (outcome.forbidden, written(outcome), outcome.removed) == ((LIST,), {"PTS"}, set())
    assert provider.asked() == {"active-currencies": 3, "currency-precision": 2}
    assert found.currency("EUR") == LISTED["EUR"]


async def test_without_a_right_to_precisions_the_list_is_published() -> None:
    provider, found = Provider(forbidden={"currency-precision"}), Topic("currencies")
    outcome = await translate(provider, found, USED)
    assert (outcome.forbidden, published(found)) == ((PRECISION,), LISTED)
    assert outcome.owed == {"currency:KWD", "currency:PTS"}
    assert provider.asked()["currency-precision"] == 2
    well = Provider()
    well.answers("active-currencies", [*AS_LISTED, PTS])
    outcome = await translate(well, found, mention())
    assert (written(outcome), outcome.owed) == ({"KWD", "PTS"}, set())
    assert well.asked()["currency-precision"] == 1


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("spoilt", [{"status": 500}, {"body": "{}"}])
async def test_a_list_that_fails_ends_the_run(nth: int, spoilt: dict[str, Any]) -> None:
    provider, found = Provider(), Topic("currencies")
    provider.inject("active-currencies", nth=nth, **spoilt)
    with pytest.raises(ApiError) as caught:
        await translate(provider, found, USED)
    assert not isinstance(caught.value, Forbidden)
    assert found == {}


@pytest.mark.parametrize("spoilt", [{"status": 500}, {"status": 404}, {"body": "{}"}])
async def test_a_symbol_that_fails_is_left_out_and_owed(spoilt: dict[str, Any]) -> None:
    provider, found = Provider(), Topic("currencies")
    provider.inject("currency-precision", **spoilt)
    outcome = await translate(provider, found, USED)
    assert [(left.endpoint, left.id) for left in outcome.left_out] == [(PRECISION, "KWD")]
    assert published(found) == LISTED | {"PTS": Currency("PTS", "Unknown", 0)}
    outcome = await translate(provider, found, mention())
    assert (outcome.left_out, outcome.owed) == ((), set())
    assert found.currency("KWD") == Currency("KWD", "Unknown", 3)


@pytest.mark.parametrize("full", [False, True])
async def test_an_estimate_has_room_for_what_is_asked(full: bool) -> None:
    provider, found = Provider(), Topic("currencies")
    await translate(provider, found, mention(currencies=["KWD"]))
    provider.asked()
    job = Currencies(api(), found.codec, found.known(USED, full))
    rows = job.estimate()
    assert rows == [Estimate(LIST, 4, 4), Estimate(PRECISION, 0, 3 if full else 1)]
    await job.run(provider, "id", lambda *_: None, at_the_end)
    asked = provider.asked()
    assert asked["active-currencies"] == 4
    assert asked["currency-precision"] == (2 if full else 1)


async def test_a_record_that_cannot_be_read_is_written_anew() -> None:
    provider, found = Provider(), Topic("currencies")
    await translate(provider, found, USED)
    before = published(found)
    found[b"EUR"] = found[b"EUR"][:-1]
    outcome = await translate(provider, found, mention())
    assert (written(outcome), published(found)) == ({"EUR"}, before)
    assert outcome.notes[0].startswith("1 records of the topic cannot be read, such as EUR")
