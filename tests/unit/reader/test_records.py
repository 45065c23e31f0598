"""The types of the records are those of the schemas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.errors import SchemaError
from bridge.reader import (
    CURRENCIES,
    GAPS,
    SNAPSHOTS,
    TRANSLATIONS,
    Currency,
    Gap,
    Place,
    Snapshot,
    Topic,
    Translation,
    records,
)
from bridge.reader.records import SettledBet
from bridge.records.gap import Cause, FeedGap
from bridge.records.place import moment
from bridge.snapshots import model

PRIMITIVE = {"string": str, "long": int, "double": float, "boolean": bool, "null": type(None)}


def annotation(schema: Any, named: dict[str, Any]) -> Any:
    """The type that a value of a schema has in Python."""
    match schema:
        case list():
            found = annotation(schema[0], named)
            for branch in schema[1:]:
                found = annotation(branch, named) | found
            return found
        case {"type": "record", "name": name, "fields": fields}:
            named[name] = getattr(records, name)
            hints = get_type_hints(named[name])
            assert {field["name"]: annotation(field["type"], named) for field in fields} == hints
            return named[name]
        case {"type": "enum", "name": name}:
            named[name] = str
            return str
        case {"type": "array", "items": items}:
            return list[annotation(items, named)]  # type: ignore[misc]
        case {"type": "map", "values": values}:
            return dict[str, annotation(values, named)]  # type: ignore[misc]
        case {"type": inner}:
            return annotation(inner, named)
    return named.get(schema) or PRIMITIVE[schema]


def test_a_settled_bet_has_the_fields_of_its_schema() -> None:
    assert annotation(load("settled-bet"), {}) is SettledBet


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (1_790_000_000_000_001, "2026-09-21T14:13:20.000001+00:00"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00+00:00"),
        (-62_135_596_800_000_001, None),
        (2**63 - 1, None),
    ],
)
def test_a_time_that_python_cannot_hold_is_none(micros: int, shown: str | None) -> None:
    found = moment(micros)
    assert (found and found.isoformat()) == shown


PLACE: dict[str, Any] = {"topic": "t", "partition": 0, "offset": 1, "timestamp": 2, "key": "k"}
AT = 1_790_000_000.5
TIME = datetime.fromtimestamp(AT, UTC)


@pytest.mark.parametrize(
    ("topic", "datum", "expected"),
    [
        (
            TRANSLATIONS,
            model.Translation("event", 7, {"en": "x"}, sport_id=3, competitor_ids=[1, 2]).to_avro("s"),
            Translation(
                **PLACE,
                kind="event",
                id=7,
                event_id=None,
                sport_id=3,
                region_id=None,
                league_id=None,
                competitor_ids=[1, 2],
                market_type_id=None,
                texts={"en": "x"},
                snapshot_id="s",
            ),
        ),
        (
            CURRENCIES,
            model.Currency("EUR", "Fiat", 2).to_avro("s"),
            Currency(**PLACE, symbol="EUR", type="Fiat", precision=2, snapshot_id="s"),
        ),
        (
            GAPS,
            FeedGap("f", AT - 1.5, AT - 1, Cause.TOO_OLD, AT).to_avro(),
            Gap(
                **PLACE,
                feed="f",
                start=TIME - timedelta(seconds=1.5),
                end=TIME - timedelta(seconds=1),
                cause="TooOld",
                detected_at=TIME,
            ),
        ),
        (
            SNAPSHOTS,
            model.Snapshot(
                "j", "i", AT - 9, AT, None, False, ("en",), ("event",), ends={0: 5, 3: 1}
            ).to_avro(),
            Snapshot(
                **PLACE,
                job="j",
                id="i",
                finished_at=TIME,
                complete=False,
                languages=("en",),
                kinds=("event",),
                ends={0: 5, 3: 1},
            ),
        ),
    ],
    ids=lambda it: it.name if isinstance(it, Topic) else "",
)
def test_consumers_read_what_the_bridge_and_its_jobs_write(
    topic: Topic[Any], datum: dict[str, Any], expected: Place
) -> None:
    assert topic.schema is not None
    codec = Codec(load(topic.schema), 1)
    assert topic.make(PLACE, codec.decode(codec.encode(datum))) == expected


def test_a_time_that_no_clock_shows_is_named() -> None:
    datum = FeedGap("f", 0, 1, Cause.TOO_OLD, 2).to_avro() | {"to": 2**62}
    with pytest.raises(SchemaError, match=r"^not a Gap: to: 4611686018427387904 microseconds are not a time"):
        GAPS.make(PLACE, datum)
