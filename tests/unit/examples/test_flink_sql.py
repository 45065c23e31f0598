"""The Flink SQL example without Flink: its statements, schemas, tables, and what it is checked against."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.avro.schemas import load
from examples.engines import FOLDER, check_of, module_of
from examples.truth import Truth

parsing = module_of("flink-sql", "statements")
check: Any = check_of("flink-sql")
VARIABLES = {
    "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": "broker:9092",
    "BRIDGE_REGISTRY__URL": "http://registry",
    "BRIDGE_TOPICS__PREFIX": "bets-of",
}
STATEMENTS = list(
    parsing.statements((FOLDER / "flink-sql" / "settlements.sql").read_text("utf-8"), VARIABLES)
)


def test_the_variables_are_filled_in() -> None:
    tables = [statement for statement in STATEMENTS if statement.startswith("CREATE TABLE")]
    for statement in tables:
        assert "'topic' = 'bets-of." in statement
        assert "'properties.bootstrap.servers' = 'broker:9092'" in statement
        assert "'value.avro-confluent.url' = 'http://registry'" in statement
    assert tables
    assert ("table.local-time-zone", "UTC") in map(parsing.setting, STATEMENTS)
    assert [s for s in STATEMENTS if "--" in s or s.endswith(";") or "${" in s] == []


def test_the_tables_over_the_bridges_topics_read_committed_records_only() -> None:
    sources = [s for s in STATEMENTS if "read_committed" in s]
    assert [s.split()[2] for s in sources] == [*parsing.SOURCES]


@pytest.mark.parametrize("table", ["bets", "settlements"])
def test_a_schema_in_the_file_is_a_part_of_the_bridges(table: str) -> None:
    [statement] = [s for s in STATEMENTS if s.startswith(f"CREATE TABLE {table} ")]
    given = json.loads(statement.partition("'value.avro-confluent.schema' = '")[2].partition("'")[0])
    shipped = plain(json.loads(json.dumps(load("settled-bet"))))
    assert given == narrowed(given, shipped)


def plain(node: Any) -> Any:
    """A schema without docs, defaults of fields and logical types."""
    if isinstance(node, list):
        return [plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "logicalType" in node:
        return node["type"]
    dropped = {"doc"} if "symbols" in node else {"doc", "default"}
    return {name: plain(value) for name, value in node.items() if name not in dropped}


def narrowed(given: Any, shipped: Any) -> Any:
    """The shipped schema, with only the fields that the given one has, in its order."""
    if isinstance(given, list):
        return [narrowed(*pair) for pair in zip(given, shipped, strict=True)]
    if not isinstance(given, dict):
        return shipped
    if "fields" in given:
        types = {field["name"]: field["type"] for field in shipped["fields"]}
        fields = [{"name": f["name"], "type": narrowed(f["type"], types[f["name"]])} for f in given["fields"]]
        return {**shipped, "fields": fields}
    return {name: narrowed(value, shipped[name]) for name, value in given.items()}


def bet(number: int, settled: str, **changes: Any) -> dict[str, Any]:
    return {
        "betId": f"b{number}",
        "betSettlement": 1,
        "selections": [{"sportId": 1, "competitionId": 9}, {"sportId": 1, "competitionId": 9}],
        "isRejected": False,
        "settlementTime": f"2026-11-23T21:{settled}Z",
        "payout": 0.000000015,
        "amount": {"currency": "BTC", "value": 3, "precision": 8},
        **changes,
    }


TEXTS: dict[tuple[str, Any], dict[str, str]] = {
    ("sport", 1): {"en": "Football"},
    ("league", 9): {"en": "Serie A"},
}
BETS = [
    bet(1, "40:59.9", payout=7),
    bet(1, "40:59.95"),  # settled again
    bet(2, "41:05"),
    bet(3, "40:59.5", selections=[{"sportId": 1, "competitionId": 9}, {"sportId": 1, "competitionId": 8}]),
    bet(4, "41:06", amount=None, selections=None, betSettlement=2),
    bet(5, "41:06", isRejected=True, betSettlement=0),
    bet(6, "", isRejected=True, settlementTime="0001-01-01T00:00:00+02:00"),
]
ROWS = [
    {"table": "profit_and_loss", "sportId": 1, "leagueId": 9, "currency": "BTC", "sport": "Football",
     "league": "Serie A", "bets": 2, "stake": "0.00000006", "payout": "0.00000004", "profit": "0.00000002"},
    {"table": "profit_and_loss", "sportId": 0, "leagueId": 0, "currency": "BTC", "sport": None,
     "league": None, "bets": 1, "stake": "0.00000003", "payout": "0.00000002", "profit": "0.00000001"},
    {"table": "profit_and_loss", "sportId": 0, "leagueId": 0, "currency": "", "sport": None,
     "league": None, "bets": 1, "stake": None, "payout": None, "profit": None},
    {"table": "settlements_by_minute", "minute": "2026-11-23T21:40:00Z",
     "settlements": 3, "won": 3, "late": 1},
    {"table": "settlements_by_minute", "minute": "2026-11-23T21:41:00Z",
     "settlements": 3, "won": 1, "late": 0},
]  # fmt: skip


def test_the_check_accepts_what_is_right() -> None:
    truth = Truth(BETS, TEXTS)
    assert list(check.differences(ROWS, truth)) == []
    assert list(check.differences([*ROWS[:3], {**ROWS[3], "late": 0}, ROWS[4]], truth)) == []


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        (0, {"stake": "0.00000007"}),
        (0, {"bets": 3}),
        (0, {"league": None}),
        (2, {"stake": "0"}),
        (3, {"minute": "58864-11-23T21:40:00Z"}),
        (3, {"late": 2}),
        (4, {"won": 2}),
    ],
)
def test_the_check_finds_a_wrong_value(row: int, changes: dict[str, Any]) -> None:
    rows = [{**r, **changes} if number == row else r for number, r in enumerate(ROWS)]
    assert list(check.differences(rows, Truth(BETS, TEXTS)))


def test_the_check_finds_a_row_that_is_missing_or_there_twice() -> None:
    for number in range(len(ROWS)):
        assert list(check.differences(ROWS[:number] + ROWS[number + 1 :], Truth(BETS, TEXTS)))
        assert list(check.differences([*ROWS, ROWS[number]], Truth(BETS, TEXTS)))
