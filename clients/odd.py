"""Odd bets, every one of them legal, and a topic that has them as a bridge writes it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bridge.avro.codec import Codec
from bridge.avro.schemas import load, subject
from bridge.config import Settings
from bridge.kafka import clients
from bridge.records import topics
from bridge.registry import Registry
from bridge_sandbox.cluster import Cluster

Bet = dict[str, Any]
LARGEST, SMALLEST = 2**63 - 1, -(2**63)
NOT_SET, END_OF_9999 = -62_135_596_800_000_000, 253_402_300_799_999_999
NEW_SYMBOL = "Void"
"""A result that only the writer's schema has."""
ABORTED = "aborted"
"""How the keys of bets begin that nobody may see."""
LAST = "last"
"""The key of the last bet that can be seen. Behind it lies an aborted transaction."""
EXAMPLE = Path(__file__).parents[1] / "examples" / "settled-bet.record.json"


def usual(**changes: Any) -> Bet:
    """Return a bet of one item, with everything that can be set; `a__b` is the field b of a."""
    bet: Bet = json.loads(EXAMPLE.read_text("utf-8"))
    item = bet["selections"][0]
    item |= {"eachWayPrice": {"win": 3.5, "place": 1.4}, "deadHeatFactor": 0.5, "manualPrice": 2.4}
    item["betBuilderItems"] = [
        {"market": item["market"], "selectionId": 700_022, "settlement": item["settlement"]}
    ]
    item["betBuilderItems"] = copy.deepcopy(item["betBuilderItems"])
    for path, value in changes.items():
        *outer, name = path.split("__")
        inner: Any = bet
        for step in outer:
            inner = item if step == "item" else inner[step]
        inner[name] = value
    return bet


def ids(number: int) -> Bet:
    """Return a bet all of whose ids are a number."""
    inner = (
        "event__id",
        "market__id",
        "market__type",
        "selectionId",
        "competitionId",
        "countryId",
        "sportId",
    )
    changes = {f"item__{path}": number for path in (*inner, "limitsRatingId")}
    return usual(**changes, amount__value=number)


def times(micros: int) -> Bet:
    """Return a bet all of whose times are the same."""
    inner = ("item__event__startTime", "item__settlement__settlementTime")
    return usual(settlementTime=micros, **dict.fromkeys(inner, micros))


def money(payout: float, value: int = 1000, precision: int = 2) -> Bet:
    """Return a bet of this payout, which is its other doubles, too, and stake."""
    doubles = ("partialRefund", "payoutMultiplier", "item__price", "item__eachWayPrice__win")
    changes = dict.fromkeys((*doubles, "amount__settlementExchangeRate"), payout)
    return usual(payout=payout, amount__value=value, amount__precision=precision, **changes)


def odd_bets() -> list[tuple[str, Bet | None]]:
    """Return keys and bets in order; None is a tombstone."""
    bets: dict[str, Bet] = {
        "usual": usual(),
        "nulls": usual(selections=None, amount=None),
        "no-items": usual(selections=[]),
        "empty": usual(
            item__betBuilderItems=[], item__parameters={}, item__market__properties={}, item__event__name=""
        ),
        "null-in-items": usual(
            **dict.fromkeys(
                ("item__event", "item__market", "item__settlement", "item__price", "item__eachWayPrice"), None
            ),
            item__betBuilderItems=[{"market": None, "selectionId": 1, "settlement": None}],
            amount__currency=None,
        ),
        "null-in-records": usual(
            **dict.fromkeys(("item__event__name", "item__event__startTime", "item__market__name"), None),
            item__market__properties=None,
            item__settlement__settlementTime=None,
            item__eachWayPrice={"win": None, "place": None},
            item__limitsRatingId=None,
        ),
        "ids-largest": ids(LARGEST),
        "ids-smallest": ids(SMALLEST),
        "ids-above-doubles": ids(2**53 + 1),
        "ids-19-digits": ids(1_234_567_890_123_456_789),
        "time-not-set": times(NOT_SET),
        "time-before-year-1": times(NOT_SET - 7_200_000_000),
        "time-1600": times(-11_676_096_000_000_000 + 123_456),
        "time-1969": times(-1_234_567),
        "time-microsecond-before-1970": times(-1),
        "time-end-of-9999": times(END_OF_9999),
        "time-after-9999": times(END_OF_9999 + 7_200_000_000),
        "money-traces": money(784.1062000000001, 78_410_620_000_000_001, 14),
        "money-tiny": money(5e-324, 1, 18),
        "money-huge": money(1.7976931348623157e308, LARGEST, 0),
        "money-negative": money(-12.5, -1250),
        "money-negative-zero": money(-0.0, 0, 0),
        "unicode-ставка-🎲": usual(
            item__event__name="Bjørn \u202bכדור\u202c e\u0301 𝔘\U0010ffff",
            item__market__properties={"ключ": "\u2028"},
        ),
        "controls": usual(item__event__name='"\\\t\r\n\x00\x7f', amount__currency="\u00a0"),
        "map-keys": usual(item__parameters={"": "", "__proto__": "p", "constructor": "c", "a.b": "$"}),
        "new-symbol": usual(betSettlement=NEW_SYMBOL),
        "corrected": usual(payout=1.0),
    }
    rows: list[tuple[str, Bet | None]] = list(bets.items())
    rows += [("removed", usual()), ("removed", None), ("corrected", usual(payout=2.0)), (LAST, usual())]
    return [(key, bet and bet | {"betId": key}) for key, bet in rows]


def settings_of(cluster: Cluster, prefix: str, codec: str) -> Settings:
    """Return the settings of a bridge with one partition, whose records are compressed with a codec."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": cluster.bootstrap_servers, "compression_type": codec},
            "registry": {"url": cluster.registry_url},
            "topics": {"prefix": prefix, "partitions": 1, "replication_factor": 1},
        }
    )


def write(settings: Settings) -> list[tuple[str, Bet | None]]:
    """Write the bets to a topic, and aborted transactions between them; returns what can be seen."""
    declared = topics.declare(settings)
    topics.ensure(clients.admin(settings.kafka), settings, topics.Topics.all)
    with Registry(settings.registry) as registry:
        schema_id = registry.register(settings.topics.prefix)["settled-bet"]
    codec = Codec(load("settled-bet"), schema_id)
    newer = Codec(*_with_new_symbol(settings))
    seen = odd_bets()
    half = len(seen) // 2
    aborted = [(f"{ABORTED}-{number}", usual() | {"betId": f"{ABORTED}-{number}"}) for number in range(9)]
    producer = clients.producer(
        settings.kafka, transactional_id=settings.topics.prefix, max_record_bytes=1_000_000
    )
    producer.init_transactions(60)
    for rows, end in (
        (seen[:half], producer.commit_transaction),
        (aborted[:3], producer.abort_transaction),
        (seen[half:-1], producer.commit_transaction),
        (aborted[3:6], producer.abort_transaction),
        (seen[-1:], producer.commit_transaction),
        (aborted[6:], producer.abort_transaction),
    ):
        producer.begin_transaction()
        for key, bet in rows:
            of = newer if bet and bet["betSettlement"] == NEW_SYMBOL else codec
            producer.produce(declared.bets.name, None if bet is None else of.encode(bet), key)
        producer.flush(60)  # an aborted record counts once it is in the log
        end(60)
    return seen


def _with_new_symbol(settings: Settings) -> tuple[Any, int]:
    schema = copy.deepcopy(load("settled-bet"))
    [result] = [field["type"] for field in schema["fields"] if field["name"] == "betSettlement"]
    result["symbols"].append(NEW_SYMBOL)
    with SchemaRegistryClient({"url": settings.registry.url}) as client:
        name = subject(settings.topics.prefix, "settled-bet")
        return schema, client.register_schema(name, Schema(json.dumps(schema), "AVRO"))
