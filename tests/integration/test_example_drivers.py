"""The rows of the examples, made without a broker: by Kafka Streams with its `TopologyTestDriver`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge_sandbox.cluster.downloads import class_path
from examples.engines import FOLDER, ROOT, module_of
from examples.jars import compiled, java, joined
from tests.bets import BARE_BET
from tests.integration.engines import set_up

pytestmark = pytest.mark.long

SOURCES = FOLDER / "kafka-streams" / "src"
BETS, TRANSLATIONS = (Codec(load(name), number) for number, name in ((1, "settled-bet"), (2, "translation")))
MARKET = {"id": 8, "type": 1, "name": None, "properties": None}
ITEM = {
    "event": {"id": 7, "name": None, "isLive": False, "startTime": None},
    "market": MARKET,
    "selectionId": 9,
    "competitionId": 3,
    "countryId": 2,
    "sportId": 1,
    "settlement": None,
    "price": None,
    "eachWayPrice": None,
    "limitsRatingId": None,
    "limitsFactor": 1.0,
    "hasLineDeviation": False,
    "isOutright": False,
    "version": 1,
    "deadHeatFactor": None,
    "placeDeadHeatFactor": None,
    "parameters": None,
    "manualPrice": None,
    "alternativePrice": None,
    "type": "Standard",
    "betBuilderItems": None,
}
SETTLED = {
    "settlementResult": "Lose",
    "settlementTime": None,
    "settlementVersion": 1,
    "isManualSettlement": False,
}
EURO: dict[str, Any] = {
    "currency": "EUR",
    "value": 1050,
    "precision": 2,
    "placementExchangeRate": 1.0,
    "settlementExchangeRate": None,
}


@pytest.fixture(scope="module", params=["kafka-streams", "kafkajs", "franz-go"])
def command(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The engine's driver, compiled where it must be."""
    set_up(request.param)
    run = module_of(request.param, "run")
    driver = DRIVERS[request.param](run, tmp_path_factory.mktemp("driver"))
    return [*driver, *(str(ROOT / "schemas" / f"{name}.avsc") for name in ("settled-bet", "translation"))]


def java_driver(run: Any, directory: Path) -> list[str]:
    """Compiled with the application."""
    libraries = class_path(run.say, *run.libraries(tests=True))
    classes = compiled(sorted(SOURCES.rglob("*.java")), libraries, directory, run.say)
    path = joined((SOURCES / "main" / "resources", *classes))
    return [java(), *run.JVM, "-cp", path, "settlement.Driver"]


DRIVERS: dict[str, Callable[[Any, Path], list[str]]] = {
    "kafka-streams": java_driver,
    "kafkajs": lambda run, _: [run.NODE, str(run.HERE / "driver.js")],
    "franz-go": lambda run, directory: [str(run.built(directory) / "driver")],
}


class Driver:
    """Takes records, and returns those that they make."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self._command, self._directory = command, directory
        self._lines: list[str] = []

    def bet(self, key: str, **changes: Any) -> None:
        """Put in a settled bet."""
        self._put("bets", key, BETS.encode({**BARE_BET, "betId": key, **changes}))

    def name(self, key: str, **texts: str) -> None:
        """Put in a translation."""
        kind, _, number = key.partition(":")
        datum = {"kind": kind, "id": int(number.rpartition(":")[2]), "translations": texts, "snapshotId": "1"}
        self._put("translations", key, TRANSLATIONS.encode(datum))

    def tombstone(self, topic: str, key: str) -> None:
        """Put in a record without a value."""
        self._lines.append(f"{topic} {key} -")

    def rows(self) -> list[tuple[str, dict[str, Any] | None]]:
        """Run all; returns keys and values in order."""
        done = subprocess.run(
            self._command,
            input="\n".join(self._lines),
            cwd=self._directory,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        rows = map(json.loads, done.stdout.splitlines())
        return [(row["key"], row["value"]) for row in rows]

    def _put(self, topic: str, key: str, value: bytes) -> None:
        self._lines.append(f"{topic} {key} {value.hex()}")


@pytest.fixture
def driver(command: list[str], tmp_path: Path) -> Driver:
    return Driver(command, tmp_path)


def test_a_row_has_the_bet_and_the_names_of_its_selection(driver: Driver) -> None:
    for key in ("sport:1", "region:2", "league:3", "event:7", "market:7:8", "selection:9", "market:7:18"):
        driver.name(key, en=f"{key} in English", sv=f"{key} in Swedish")
    part = {"market": {**MARKET, "id": 18}, "selectionId": 19, "settlement": None}
    item = {**ITEM, "settlement": SETTLED, "betBuilderItems": [part]}
    driver.bet("b", amount=EURO, payout=41.2, settlementTime=1_500_001, selections=[item])
    assert driver.rows() == [
        (
            "b:0",
            {
                "betId": "b",
                "index": 0,
                "settlementVersion": 1,
                "settlementTime": "1970-01-01T00:00:01.500001Z",
                "betSettlement": "Win",
                "currency": "EUR",
                "stake": "10.50",
                "payout": "41.20",
                "selectionId": 9,
                "result": "Lose",
                "sport": "sport:1 in English",
                "league": "league:3 in English",
                "region": "region:2 in English",
                "event": "event:7 in English",
                "market": "market:7:8 in English",
                "selection": "selection:9 in English",
                "parts": [{"result": None, "market": "market:7:18 in English", "selection": None}],
            },
        )
    ]


def test_a_resettlement_overwrites_and_takes_back(driver: Driver) -> None:
    for version, count in enumerate((3, 1, 2, 0), 1):
        driver.bet("b", settlementVersion=version, selections=[ITEM] * count)
        driver.bet("other", settlementVersion=version, selections=[ITEM])
    driver.bet("none")
    driver.tombstone("bets", "other")
    said = [(key, row and row["settlementVersion"]) for key, row in driver.rows()]
    assert [(key, version) for key, version in said if key.startswith("b:")] == [
        *(("b:0", 1), ("b:1", 1), ("b:2", 1)),
        *(("b:0", 2), ("b:1", None), ("b:2", None)),
        *(("b:0", 3), ("b:1", 3)),
        *(("b:0", None), ("b:1", None)),
    ]
    assert [version for key, version in said if key == "other:0"] == [1, 2, 3, 4, None]
    assert {key for key, _ in said} == {"b:0", "b:1", "b:2", "other:0"}


def test_a_name_counts_from_when_it_is_there(driver: Driver) -> None:
    driver.bet("1", selections=[ITEM])
    driver.name("selection:9", sv="Ettan")
    driver.bet("2", selections=[ITEM])
    driver.name("selection:9", sv="Ettan", en="The first")
    driver.bet("3", selections=[ITEM])
    driver.tombstone("translations", "selection:9")
    driver.bet("4", selections=[ITEM])
    assert [row and row["selection"] for _, row in driver.rows()] == [None, None, "The first", None]


MONEY: list[tuple[dict[str, int] | None, float, tuple[str | None, str]]] = [
    ({"value": 1050, "precision": 2}, 784.1062000000001, ("10.50", "784.1062")),
    ({"value": 9_007_199_254_740_993, "precision": 18}, 1e-9, ("0.009007199254740993", "0.000000001")),
    ({"value": 1, "precision": 2}, 1.00000000049999, ("0.01", "1.00")),
    ({"value": 80_000, "precision": 0}, 1e22, ("80000", "10000000000000000000000")),
    ({"value": -5, "precision": 1}, -0.5, ("-0.5", "-0.5")),
    (None, 100.0, (None, "100")),
]


def test_what_may_be_null_is_null_money_and_ids_are_exact_and_any_time_is_one(driver: Driver) -> None:
    driver.name("market:7:8", en="market")
    driver.bet("nulls", selections=[{**ITEM, "event": None}, {**ITEM, "market": None}])
    for number, (amount, payout, _) in enumerate(MONEY):
        driver.bet(f"{number}", amount=amount and {**EURO, **amount}, payout=payout, selections=[ITEM])
    odd = {**ITEM, "selectionId": 2**53 + 1}
    driver.bet("odd", settlementTime=-62_135_604_000_000_001, selections=[odd])
    first, second, *money, last = (row or {} for _, row in driver.rows())
    nothing = dict.fromkeys(("currency", "stake", "result", "event", "market", "selection"))
    assert [{name: row[name] for name in nothing} for row in (first, second)] == [nothing] * 2
    assert [(row["stake"], row["payout"]) for row in money] == [shown for *_, shown in MONEY]
    assert last["selectionId"] == odd["selectionId"]
    assert last["settlementTime"] == "0000-12-31T21:59:59.999999Z"
