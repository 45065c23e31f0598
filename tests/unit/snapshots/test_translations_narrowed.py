"""A run that is narrowed changes nothing of what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.snapshots.model import KINDS, kind_of
from bridge.snapshots.plan import Scope
from tests.unit.snapshots.world import (
    LANGUAGES,
    WORLD,
    Provider,
    Topic,
    api,
    first_run,
    mention,
    translate,
    written,
)

EVENT, OTHER = WORLD.events[:2]
LEAGUE = EVENT.league


async def changed(narrowing: dict[str, Any], full: bool) -> tuple[set[str], set[bytes], Topic]:
    """Keys that a narrowed run writes and removes, after everything has changed at the provider."""
    provider, topic = await first_run(EVENT)
    provider.catalogue.remove("league", LEAGUE.id)
    provider.catalogue.remove("competitor", EVENT.competitors[0].id)
    provider.catalogue.rename("event", EVENT.id, "Neu")
    provider.catalogue.rename("sport", LEAGUE.sport.id, "Neu")
    scope = Scope.of(api(), **narrowing)
    outcome = await translate(provider, topic, mention(EVENT, OTHER), full=full, scope=scope)
    return written(outcome), outcome.removed, topic


async def test_one_kind() -> None:
    """Nothing is removed, and no other kind is touched."""
    assert (await changed({"kinds": ["league"]}, True))[:2] == (set(), set())
    assert (await changed({"kinds": ["sport"]}, True))[:2] == ({f"sport:{LEAGUE.sport.id}"}, set())
    assert (await changed({"kinds": ["event"]}, False))[:2] == ({f"event:{OTHER.id}"}, set())


@pytest.mark.parametrize("kind", KINDS)
async def test_only_the_kind_that_was_asked_for_is_published(kind: str) -> None:
    """Although some endpoints have names of others, too."""
    topic = Topic()
    outcome = await translate(Provider(), topic, mention(EVENT), scope=Scope.of(api(), kinds=[kind]))  # type: ignore[list-item]
    assert {kind_of(key) for key in outcome.written} == {kind}


async def test_one_language() -> None:
    """Texts of the others stay, and nothing is removed."""
    keys, removed, topic = await changed({"languages": ["sv"]}, True)
    assert removed == set()
    assert {f"event:{EVENT.id}", f"sport:{LEAGUE.sport.id}"} <= keys
    assert topic.translation(f"event:{OTHER.id}").texts.keys() == {"sv"}
    texts = topic.translation(f"event:{EVENT.id}").texts
    assert texts["sv"] == "Neu"
    assert "Neu" not in (texts["en"], texts["de"])
    assert all("sv" in topic.translation(key).texts for key in keys)


async def test_events_given_by_hand() -> None:
    """They replace those that bets mention and nothing else: lists and templates are read as ever."""
    provider, topic = Provider(), Topic()
    scope = Scope.of(api(), events=[OTHER.id])
    await translate(provider, topic, mention(EVENT), scope=scope)
    assert f"event:{OTHER.id}".encode() in topic
    assert f"market:{OTHER.id}:{OTHER.markets[0].id}".encode() in topic
    assert f"event:{EVENT.id}".encode() not in topic
    assert f"selection-template:{EVENT.markets[0].selections[0]}".encode() in topic
    assert f"league:{LEAGUE.id}".encode() in topic
    keys, removed, _ = await changed({"events": [EVENT.id]}, True)
    assert {f"event:{EVENT.id}", f"sport:{LEAGUE.sport.id}"} <= keys
    assert f"event:{OTHER.id}" not in keys
    assert removed == set()


async def test_a_narrowed_full_run_forgets_nothing() -> None:
    """Neither events nor texts."""
    _, topic = await first_run(EVENT)
    without = Provider(languages=("en", "de"))
    scope = Scope.of(api(), kinds=["event", "market"])
    outcome = await translate(without, topic, mention(OTHER), full=True, scope=scope)
    assert outcome.removed == set()
    scope = Scope.of(api(), events=[EVENT.id])
    outcome = await translate(without, topic, mention(OTHER), full=True, scope=scope)
    assert outcome.removed == set()
    assert topic.translation(f"event:{EVENT.id}").texts.keys() == set(LANGUAGES)
