"""Recorded translations and currencies are served as the provider served them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from bridge.avro.schemas import load
from bridge_sandbox.provider.rest.app import Rest
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.world.catalogue import Unknown
from bridge_sandbox.provider.world.entities import Sizes, World
from bridge_sandbox.provider.world.recorded import Names
from bridge_sandbox.provider.world.words import LANGUAGES
from tests.recordings import write
from tests.unit.sandbox.provider.rest.test_app import LISTS, NOW, SMALL, get, rest, texts_of

OTHER = World(8, NOW, Sizes(sports=1, regions=1, leagues=1, competitors=2, events=1))
NONE = dict.fromkeys(["eventId", "sportId", "regionId", "leagueId", "competitorIds", "marketTypeId"])


def record(kind: str, number: int, texts: dict[Any, str], **ids: Any) -> dict[str, Any]:
    """A record of the schema `Translation`."""
    return {"kind": kind, "id": number, **NONE, **ids, "translations": texts, "snapshotId": "s"}


def played(path: Path, records: list[dict[str, Any]], schema: str = "translation") -> Rest:
    """The REST side of a recording, beside a world of other names."""
    names = Names([write(path / "names.avro", records, load(schema))])
    return Rest(OTHER, RestPolicy(rate=1e6, burst=10**6), names=names)


def test_a_recorded_world_answers_as_the_world_did(tmp_path: Path) -> None:
    recorded = rest()
    records = [
        record(known.kind, known.id, known.texts, **orjson.loads(orjson.dumps(known.relations)))
        for known in recorded.catalogue.truth()
    ]
    side = played(tmp_path, [*records, record("from the future", 1, {"en": "x"})])
    assert texts_of(side, LANGUAGES) == texts_of(recorded, LANGUAGES)
    assert len({*map(str, side.catalogue.truth())}) == len(records)
    paths = [f"translations/sv/{name}" for name in LISTS.values()]
    paths += [f"translations/all/event/{event.id}" for event in SMALL.events]
    for path in paths:
        assert get(side, path) == get(recorded, path)
    for event in SMALL.events:
        types = [
            {
                each["marketTypeId"]: {selection["id"] for selection in each["selections"]}
                for each in reversed(its)
            }
            for its in (get(of, f"translations/en/{event.id}/markets") for of in (side, recorded))
        ]
        assert types[0].keys() == types[1].keys()
        assert all(types[1][type_] <= types[0][type_] for type_ in types[1])


def test_what_was_not_recorded_has_no_name(tmp_path: Path) -> None:
    side = played(
        tmp_path,
        [
            record("sport", 1, {"pt": "Futebol"}),
            record("sport", 2, {"en": "Wrong"}),
            record("sport", 2, {"en": "Tennis"}),
            record("event", 5, {"pt": "A – B"}),
            record("market", 7, {"pt": "Total 1"}, eventId=5, marketTypeId=18),
            record("market", 8, {"en": "Total 2"}, eventId=5, marketTypeId=18),
            record("selection", 71, {"en": "Over"}, eventId=5, marketTypeId=18),
            record("selection", 72, {"en": "Yes"}, eventId=5, marketTypeId=29),
        ],
    )
    assert get(side, "translations/pt/sports") == [{"id": 1, "language": "pt", "translation": "Futebol"}]
    assert get(side, "translations/en/sports") == [{"id": 2, "language": "en", "translation": "Tennis"}]
    assert get(side, "translations/de/sports") == get(side, "translations/en/leagues") == []
    nothing = {"id": 0, "translations": {}}
    assert get(side, "translations/all/event/5") == {
        "eventTranslation": {"id": 5, "translations": {"pt": "A – B"}},
        **dict.fromkeys(["sport", "region", "league"], nothing),
        "competitors": [],
    }
    assert [len(market["selections"]) for market in get(side, "translations/all/5/markets")] == [1, 0]
    markets = get(side, "translations/pt/5/markets")
    assert [(market["market"]["translation"], market["selections"]) for market in markets] == [
        ("Total 1", [])
    ]
    assert side.answer(NOW, "/api/translations/all/event/6", f"Bearer {side.tokens.mint(NOW)}").status == 404
    assert get(side, "CurrencyExchange/active-currencies")  # of the world: none was recorded


def test_recorded_entities_can_be_changed(tmp_path: Path) -> None:
    side = played(tmp_path, [record("sport", 1, {"en": "Football"}), record("sport", 2, {"en": "Tennis"})])
    side.catalogue.rename("sport", 1, "Soccer", "en")
    side.catalogue.remove("sport", 2)
    assert [known.texts for known in side.catalogue.truth()] == [{"en": "Soccer"}]
    with pytest.raises(Unknown):
        side.catalogue.remove("sport", 3)


def test_recorded_currencies_are_listed_if_they_were_active(tmp_path: Path) -> None:
    kinds = {"EUR": "Fiat", "BTC": "Crypto", "PTS": "Custom", "OLD": "Unknown"}
    side = played(
        tmp_path,
        [{"symbol": it, "type": kind, "precision": 3, "snapshotId": "s"} for it, kind in kinds.items()],
        "currency",
    )
    listed = get(side, "CurrencyExchange/active-currencies")
    assert [(one["symbol"], one["type"]) for one in listed] == [("EUR", 1), ("BTC", 2), ("PTS", 3)]
    assert get(side, "CurrencyExchange/currency-precision?symbol=OLD") == {"precision": 3}
    assert get(side, "translations/en/sports")  # of the world: none was recorded
