"""What settled bets refer to."""

from __future__ import annotations

from typing import Any

import orjson

from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load
from bridge.config.api import KINDS
from bridge.messages.parser import MessageParser
from bridge.snapshots.job import SCHEMAS
from bridge.snapshots.references import Place, References, references_schema
from bridge_sandbox.provider.stream import Stream, StreamSettings
from tests.unit.snapshots.world import NOW, WORLD, bet, item, mention


def test_a_bet_of_the_topic_says_what_it_refers_to() -> None:
    writer = Codec(load("settled-bet"), 7)
    readers = [Codec(references_schema(job), READ_ONLY, lambda _: load("settled-bet")) for job in SCHEMAS]
    references, parser = References(), MessageParser()
    items: list[dict[str, Any]] = []
    currencies: set[str] = set()
    stream = Stream(WORLD, NOW, StreamSettings(rate=100))
    for slot in range(600):
        body = stream.message(slot).body
        data = orjson.loads(body)["data"]
        items += data.get("selections") or ()
        symbol = (data.get("amount") or {}).get("currency")
        currencies |= {symbol} if symbol else set()
        for reader in readers:
            references.add(reader.decode(writer.encode(parser.parse(body).bet or {})))
    assert references.currencies == currencies
    assert references.listed["sport"] == {found["sportId"] for found in items}
    assert references.listed["league"] == {found["competitionId"] for found in items}
    assert references.listed["region"] == {found["countryId"] for found in items}
    assert references.events.keys() == {found["event"]["id"] for found in items if found.get("event")}
    parts = [(found, part) for found in items for part in [found, *(found.get("betBuilderItems") or ())]]
    assert len(parts) > len(items)
    assert set(references.keys("market")) == {
        f"market:{found['event']['id']}:{part['market']['id']}".encode()
        for found, part in parts
        if found.get("event") and part.get("market")
    }
    assert references.market_types == {
        (found["sportId"], part["market"]["type"]) for found, part in parts if part.get("market")
    }
    assert references.all_selections() == {part["selectionId"] for _, part in parts}
    assert any(not found.get("event") for found in items)
    assert any(not part.get("market") for _, part in parts)


def test_each_kind_has_its_keys() -> None:
    event = WORLD.events[0]
    market = event.markets[0]
    references = References()
    references.add(bet([item(event)]))
    assert {kind: list(references.keys(kind)) for kind in KINDS} == {
        "sport": [f"sport:{event.league.sport.id}".encode()],
        "region": [f"region:{event.league.region.id}".encode()],
        "league": [f"league:{event.league.id}".encode()],
        "competitor": [],
        "event": [f"event:{event.id}".encode()],
        "market": [f"market:{event.id}:{market.id}".encode()],
        "selection": [f"selection:{market.selections[0]}".encode()],
        "selection-template": [f"selection-template:{market.selections[0]}".encode()],
        "market-type-template": [f"market-type-template:{event.league.sport.id}:{market.type}".encode()],
    }


def test_what_is_null_is_not_mentioned() -> None:
    references = References()
    references.add(bet(None, currency=None))
    references.add({"selections": [], "amount": {"currency": None}})
    assert references == References()
    references.add(bet([item(None, sportId=3, selectionId=7, market={"id": 5, "type": 18})]))
    assert (references.events, references.markets) == ({}, {})
    assert references.all_selections() == {7}
    assert references.market_types == {(3, 18)}
    assert references.listed["sport"] == {3}


def test_an_id_of_zero_is_an_id() -> None:
    references = References()
    references.add(bet([item(None, event={"id": 0}, market={"id": 0, "type": 0})]))
    assert [key.decode() for kind in KINDS for key in references.keys(kind)] == [
        "sport:0",
        "region:0",
        "league:0",
        "event:0",
        "market:0:0",
        "selection:0",
        "selection-template:0",
        "market-type-template:0:0",
    ]


def test_what_is_too_long_is_no_symbol() -> None:
    references = References()
    for symbol in ("EUR", "X" * 100, "X" * 101):
        references.add(bet(currency=symbol))
    assert references.currencies == {"EUR", "X" * 100}


def test_a_market_type_counts_within_its_sport() -> None:
    references = References()
    market = {"id": 1, "type": 18}
    references.add(bet([item(None, sportId=1, market=market), item(None, sportId=2, market=market)]))
    assert set(references.keys("market-type-template")) == {
        b"market-type-template:1:18",
        b"market-type-template:2:18",
    }


def test_parts_of_a_bet_builder_belong_to_the_event_of_their_item() -> None:
    event = WORLD.events[0]
    parts = [{"market": {"id": 71, "type": 18}, "selectionId": 72}, {"market": None, "selectionId": 73}]
    references = References()
    references.add(bet([item(event, market=None, selectionId=0, betBuilderItems=parts)]))
    assert references.markets == {event.id: {71}}
    assert references.selections == {event.id: {0, 72, 73}}
    assert references.market_types == {(event.league.sport.id, 18)}


def test_the_last_bet_says_where_an_event_is() -> None:
    event = WORLD.events[0]
    references = mention(event)
    assert references.events[event.id] == Place(
        event.league.sport.id, event.league.id, event.league.region.id
    )
    references.add(bet([item(event, competitionId=1, countryId=2, sportId=3)]))
    assert references.events[event.id] == Place(3, 1, 2)
