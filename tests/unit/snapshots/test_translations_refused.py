"""What a run does where the provider gives no right, does not know an event, or fails."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from bridge.errors import ApiError, AuthError, Forbidden
from bridge.simulator.rest_faults import RestFault
from bridge.simulator.rest_routes import CURRENCIES, ENDPOINTS, Endpoint
from bridge.snapshots.records import LISTED, kind_of
from bridge.snapshots.requests import Request
from tests.unit.snapshots.world import NOW, WORLD, Provider, Topic, api, mention, translate, written

TRANSLATIONS = [endpoint for endpoint in ENDPOINTS if endpoint not in CURRENCIES]
EVENT, OTHER, THIRD = WORLD.events[:3]
# All 13 are asked: lists and markets lack a language, and so does what gives all of them.
BOTH: dict[str, Any] = {"only_in_lists": {"sv"}, "only_in_all": {"de"}, "event_members": "ids"}
KINDS_OF: dict[Endpoint, set[str]] = {
    "sports": {"sport"},
    "regions": {"region"},
    "leagues": {"league"},
    "competitors": {"competitor"},
    "all-sport": {"sport"},
    "all-region": {"region"},
    "all-league": {"league"},
    "all-competitor": {"competitor"},
    "all-event": {"event", "sport", "region", "league", "competitor"},
    "all-markets": {"market", "selection"},
    "markets": {"market", "selection"},
    "selection-templates": {"selection-template"},
    "market-type-templates": {"market-type-template"},
}
"""What an endpoint tells of."""


@pytest.mark.parametrize("endpoint", TRANSLATIONS)
async def test_without_a_right_to_an_endpoint_the_rest_goes_on(endpoint: Endpoint) -> None:
    """Its path is told; of its kinds nothing is removed or erased, of the others what is due."""
    topic = Topic()
    await translate(Provider(**BOTH), topic, mention(EVENT, OTHER))
    before = topic.texts()
    provider = Provider(**{**BOTH, "languages": ("en", "sv"), "forbidden": {endpoint}})
    for kind, number in [
        ("sport", OTHER.league.sport.id),
        ("region", EVENT.league.region.id),
        ("league", EVENT.league.id),
        ("competitor", EVENT.competitors[0].id),
    ]:
        provider.catalogue.remove(kind, number)  # type: ignore[arg-type]
    outcome = await translate(provider, topic, mention(OTHER, THIRD), full=True)
    (path,) = outcome.forbidden
    assert matches(path, endpoint)
    untouched = KINDS_OF[endpoint]
    assert not {kind_of(key) for key in outcome.removed} & untouched
    after = topic.texts()
    for key, texts in before.items():
        if kind_of(key) in untouched:
            assert texts.keys() <= after[key].keys()
    gone = {kind_of(key) for key in outcome.removed}
    due = {*LISTED, "event", "market", "selection", "selection-template"} - untouched
    assert gone == due
    erased = {kind_of(k) for k, texts in after.items() if k in before and texts.keys() < before[k].keys()}
    assert {"event", "market", "selection"} - untouched <= erased


def matches(path: str, endpoint: Endpoint) -> bool:
    """Whether that is the path of the endpoint, with the interface's placeholders."""
    last = {
        "markets": "/{lang}/{eventId}/markets",
        "all-markets": "/all/{eventId}/markets",
        "selection-templates": "/templates/selections",
        "market-type-templates": "/templates/market-types",
    }
    kind = endpoint.removeprefix("all-")
    default = f"/all/{kind}/{{{kind}Id}}" if endpoint.startswith("all-") else f"/{{lang}}/{kind}"
    return path == "/api/translations" + last.get(endpoint, default)


async def test_an_endpoint_without_a_right_is_asked_once() -> None:
    """By one question at a time; every other question to it would be answered alike."""
    provider = Provider(**BOTH, forbidden=set(TRANSLATIONS))
    outcome = await translate(provider, Topic(), mention(*WORLD.events), settings=api(concurrency=1))
    assert set(provider.asked().values()) == {1}
    assert len(outcome.forbidden) == len(TRANSLATIONS) - 1  # no event has named a competitor
    assert (outcome.written, outcome.removed) == ({}, set())


async def test_a_list_without_a_right_to_it_casts_no_doubt() -> None:
    """What the topic has of its kind is not asked about by id."""
    topic = Topic()
    await translate(Provider(), topic, mention(EVENT))
    provider = Provider(forbidden={"leagues"})
    await translate(provider, topic, mention(EVENT), full=True)
    asked = provider.asked()
    assert (asked["leagues"], asked["all-league"]) == (1, 0)


async def test_an_unknown_event_is_not_asked_about_again() -> None:
    """In this run; its records stand, and the run tells of it."""
    provider, topic = Provider(**BOTH), Topic()
    await translate(provider, topic, mention(EVENT, OTHER))
    before = dict(topic)
    provider.catalogue.remove("event", EVENT.id)
    provider.asked()
    outcome = await translate(provider, topic, mention(EVENT, OTHER), full=True)
    asked = provider.asked()
    assert (asked["all-event"], asked["all-markets"], asked["markets"]) == (2, 1, len(api().languages) - 2)
    assert (written(outcome), outcome.removed) == (set(), set())
    assert topic == before
    assert f"1 events are unknown to the provider, such as {EVENT.id}" in outcome.notes


async def test_an_unknown_event_is_found_out_by_its_markets_too() -> None:
    """Where its names are known already: no language of its markets is asked for then."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(EVENT))
    del topic[f"market:{EVENT.id}:{EVENT.markets[0].id}".encode()]
    provider.catalogue.remove("event", EVENT.id)
    provider.asked()
    await translate(provider, topic, mention(EVENT))
    asked = provider.asked()
    assert (asked["all-event"], asked["all-markets"], asked["markets"]) == (0, 1, 0)


async def test_markets_are_asked_for_in_each_language_where_there_is_nothing_in_all() -> None:
    """An empty answer proves as little as one that is forbidden."""
    topics = []
    for forbidden in (set[Endpoint](), {"all-markets"}):
        provider, topic = Provider(forbidden=forbidden), Topic()
        provider.rest.inject(RestFault(endpoint="all-markets", body="[]", times=None))
        await translate(provider, topic, mention(EVENT))
        assert provider.asked()["markets"] == len(api().languages)
        topics.append(topic)
    assert topics[0].texts() == topics[1].texts()
    market = f"market:{EVENT.id}:{EVENT.markets[0].id}"
    assert topics[0].translation(market).texts.keys() == set(api().languages)


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 400}, {"body": "{"}, {"body": '{"id": "x"}'}])
@pytest.mark.parametrize("endpoint", TRANSLATIONS)
async def test_any_other_failure_ends_the_run(endpoint: Endpoint, fault: dict[str, Any]) -> None:
    """At whichever endpoint: nothing is published."""
    provider, topic = Provider(**BOTH), Topic()
    provider.rest.inject(RestFault(endpoint=endpoint, **fault))
    with pytest.raises(ApiError) as caught:
        await translate(provider, topic, mention(EVENT))
    assert not isinstance(caught.value, Forbidden)
    assert topic == {}


async def test_a_token_that_is_refused_ends_the_run() -> None:
    """Others would be refused, too."""
    provider = Provider()
    provider.rest.inject(RestFault(endpoint="all-event", status=401))
    with pytest.raises(AuthError):
        await translate(provider, Topic(), mention(EVENT))


@pytest.mark.parametrize("endpoint", ["all-sport", "all-region", "all-league", "all-competitor"])
async def test_an_answer_about_another_id_ends_the_run(endpoint: Endpoint) -> None:
    """It would be published under the wrong name."""
    provider = Provider(**BOTH)
    body = orjson.dumps({"id": 999_999, "translations": {"en": "x"}}).decode()
    provider.rest.inject(RestFault(endpoint=endpoint, body=body))
    with pytest.raises(ApiError, match=rf"GET /api/.*/{endpoint[4:]}/\d+ answered about another id: 999999"):
        await translate(provider, Topic(), mention(EVENT))


async def test_an_answer_about_another_event_ends_the_run() -> None:
    """Likewise."""
    provider = Provider()
    other = provider.rest.answer(NOW, f"/api/translations/all/event/{OTHER.id}", provider.authorization)
    provider.rest.inject(RestFault(endpoint="all-event", body=other.body.decode()))
    with pytest.raises(ApiError, match=f"all/event/{EVENT.id} answered about another id: {OTHER.id}"):
        await translate(provider, Topic(), mention(EVENT))


@pytest.mark.parametrize("endpoint", ["selection-templates", "market-type-templates"])
async def test_templates_that_nobody_asked_for_are_left_out(endpoint: Endpoint) -> None:
    """A provider that calls its parameters otherwise may answer with anything."""
    asked_for = EVENT.markets[0].selections[0] if endpoint == "selection-templates" else EVENT.markets[0].type
    entities = [{"id": number, "translations": {"en": "x"}} for number in (asked_for, 999_999)]
    provider, topic = Provider(), Topic()
    provider.rest.inject(RestFault(endpoint=endpoint, body=orjson.dumps(entities).decode(), times=None))
    await translate(provider, topic, mention(EVENT))
    found = {int(key.rpartition(b":")[2]) for key in topic if key.startswith(endpoint[:-1].encode())}
    assert found == {asked_for}


@pytest.mark.parametrize("error", [ApiError, asyncio.CancelledError])
async def test_a_failure_leaves_no_question_under_way(error: type[BaseException]) -> None:
    """Those that wait for an answer are given up, and the failure is the one that is told."""
    provider = Failing(error)
    with pytest.raises(error):
        await translate(provider, Topic(), mention(*WORLD.events), settings=api(concurrency=8))
    assert provider.most_at_once == 8
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_keyboard_interrupt_passes() -> None:
    """It ends the loop, and no task outlives it."""
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(translate(Failing(KeyboardInterrupt), Topic(), mention(*WORLD.events)))


async def test_a_run_that_is_cancelled_leaves_no_question_under_way() -> None:
    """At whatever moment."""
    run = asyncio.create_task(translate(Silent(), Topic(), mention(EVENT)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) > 2
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Silent(Provider):
    """Never answers."""

    async def ask(self, request: Request[Any], attempts: int | None = None) -> Any:
        await asyncio.Event().wait()


class Failing(Provider):
    """Breaks in the middle of the events, while the others never answer."""

    def __init__(self, error: type[BaseException]) -> None:
        super().__init__()
        self._error = error

    async def ask(self, request: Request[Any], attempts: int | None = None) -> Any:
        if "{eventId}" not in request.endpoint:
            return await super().ask(request)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        if request.target.endswith(str(WORLD.events[0].id)):
            for _ in range(20):
                await asyncio.sleep(0)
            raise self._error
        return await asyncio.Event().wait()
