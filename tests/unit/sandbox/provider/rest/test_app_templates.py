"""Where the simulated provider takes the ids of templates, which the interface does not show."""

from __future__ import annotations

import orjson
import pytest

from tests.unit.sandbox.provider.rest.test_app import NOW, get, rest


@pytest.mark.parametrize("place", ["path", "body"])
def test_templates_may_be_asked_for_elsewhere(place: str) -> None:
    """With the same answers as in the query."""
    usual, other = rest(), rest(template_ids=place)
    known = {thing.kind: thing for thing in usual.catalogue.truth()}
    selection, type_ = known["selection-template"].id, known["market-type-template"]
    sport = type_.relations["sportId"]
    for query, path, body in (
        (f"selections?selectionIds={selection}", f"selections/{selection},1", {"selectionIds": [selection]}),
        (
            f"market-types?sportId={sport}&marketTypeIds={type_.id}",
            f"market-types/{sport}/{type_.id}",
            {"sportId": sport, "marketTypeIds": [type_.id]},
        ),
    ):
        root = "/api/translations/templates/"
        asked = (root + path, b"") if place == "path" else (root + path.partition("/")[0], orjson.dumps(body))
        found = other.answer(NOW, asked[0], f"Bearer {other.tokens.mint(NOW)}", asked[1])
        assert found.status == 200
        assert orjson.loads(found.body)[:1] == get(usual, f"translations/templates/{query}")
        for wrong in (root + query, root + path.partition("/")[0]):
            assert other.answer(NOW, wrong, f"Bearer {other.tokens.mint(NOW)}", b"[5").status == 400


def test_templates_take_no_ids_in_the_path_unless_they_do() -> None:
    """There is nothing then."""
    side = rest()
    answer = side.answer(NOW, "/api/translations/templates/selections/1", f"Bearer {side.tokens.mint(NOW)}")
    assert answer.status == 404
