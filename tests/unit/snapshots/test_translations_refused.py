"""What a run does where the provider gives no right, does not know an event, or fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from bridge.config.api import LISTED
from bridge.errors import ApiError, AuthError, Forbidden, Unanswered
from bridge.rest.endpoints import Questions
from bridge.snapshots.asking import CLOSED_AFTER
from bridge.snapshots.model import kind_of
from bridge.snapshots.translations import Translations
from bridge.snapshots.usage import Usage
from bridge_sandbox.provider.rest.routes import CURRENCIES, ENDPOINTS, Endpoint
from tests.unit.snapshots.world import (
    BOTH,
    NOW,
    WORLD,
    Provider,
    Topic,
    alone,
    api,
    bet,
    first_run,
    item,
    mention,
    translate,
    written,
)

TRANSLATIONS = [endpoint for endpoint in ENDPOINTS if endpoint not in CURRENCIES]
EVENT, OTHER, THIRD = WORLD.events[:3]
KINDS_OF: dict[str, set[str]] = {
    **{f"{kind}s": {kind} for kind in LISTED},
    **{f"all-{kind}": {kind} for kind in LISTED},
    "all-event": {"event", *LISTED},
    **{endpoint: {"market", "selection"} for endpoint in ("all-markets", "markets")},
    "selection-templates": {"selection-template"},
    "market-type-templates": {"market-type-template"},
}
"""Kinds of which an endpoint has names."""
PATHS = [
    row.endpoint
    for row in Translations(api(), Topic().codec, Topic().known(mention(*WORLD.events), full=True)).estimate()
]


@pytest.mark.parametrize("endpoint", TRANSLATIONS)
async def test_without_a_right_to_an_endpoint_the_rest_goes_on(endpoint: Endpoint) -> None:
    _, topic = await first_run(EVENT, OTHER, **BOTH)
    before = topic.texts()
    provider = Provider(**{**BOTH, "languages": ("en", "sv"), "forbidden": {endpoint}})
    outcome = await translate(provider, topic, mention(OTHER, THIRD), full=True)
    (path,) = outcome.forbidden
    assert matches(path, endpoint)
    assert [(left.endpoint, left.id) for left in outcome.left_out] == [(path, None)]
    assert endpoint != "all-markets" or not outcome.owed, "each language has them"
    untouched = KINDS_OF[endpoint]
    after = topic.texts()
    for key, texts in before.items():
        if kind_of(key) in untouched and key in after:
            assert texts.keys() <= after[key].keys()
    erased = {kind_of(k) for k, texts in after.items() if k in before and texts.keys() < before[k].keys()}
    assert {"event", "market", "selection"} - untouched <= erased
    # An ordinary run, in which bets mention nothing new.
    again = await translate(Provider(**{**BOTH, "languages": ("en", "sv")}), topic, mention())
    assert (again.left_out, again.owed, again.forbidden) == ((), set(), ())
    never = Topic()
    well = Provider(**{**BOTH, "languages": ("en", "sv")})
    await translate(well, never, mention(OTHER, THIRD), full=True)
    found = topic.texts()
    for key, texts in never.texts().items():
        assert texts.items() <= found[key].items()


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


async def test_an_endpoint_without_a_right_is_asked_three_times() -> None:
    provider = Provider(**BOTH, forbidden=set(TRANSLATIONS))
    outcome = await translate(provider, Topic(), mention(*WORLD.events), settings=api(concurrency=1))
    assert max(provider.asked().values()) == CLOSED_AFTER
    assert len(outcome.forbidden) == len(TRANSLATIONS) - 1  # no event has named a competitor
    assert (outcome.written, outcome.removed) == ({}, set())


async def test_a_list_without_a_right_to_it_casts_no_doubt() -> None:
    _, topic = await first_run(EVENT)
    provider = Provider(forbidden={"leagues"})
    await translate(provider, topic, mention(EVENT), full=True)
    asked = provider.asked()
    assert (asked["leagues"], asked["all-league"]) == (len(api().languages), 0)


async def test_an_unknown_event_is_not_asked_about_again() -> None:
    provider, topic = await first_run(EVENT, OTHER, **BOTH)
    before = dict(topic)
    provider.catalogue.remove("event", EVENT.id)
    provider.asked()
    outcome = await translate(provider, topic, mention(EVENT, OTHER), full=True)
    asked = provider.asked()
    assert (asked["all-event"], asked["all-markets"], asked["markets"]) == (2, 1, len(api().languages) - 2)
    assert (written(outcome), outcome.removed) == (set(), set())
    assert topic == before
    assert f"1 events are unknown to the provider, such as {EVENT.id}" in outcome.notes


@pytest.mark.parametrize("fault", [{"body": "[]"}, {"status": 404}])
async def test_markets_are_asked_for_in_each_language_where_there_is_nothing_in_all(
    fault: dict[str, Any],
) -> None:
    provider, topic = Provider(), Topic()
    provider.inject("all-markets", times=None, **fault)
    provider.wrong["/sv/.*/markets"] = lambda _: []
    outcome = await translate(provider, topic, mention(EVENT))
    assert (outcome.left_out, any("unknown" in note for note in outcome.notes)) == ((), False)
    assert provider.asked()["markets"] == len(api().languages)
    for market in EVENT.markets:
        assert topic.translation(f"market:{EVENT.id}:{market.id}").texts.keys() == {"en", "de"}


FAULTS: list[dict[str, Any]] = [{"status": 500}, {"status": 400}, {"body": "{"}, {"body": '{"id": "x"}'}]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("endpoint", ["sports", "regions", "leagues", "competitors"])
async def test_a_list_that_fails_ends_the_run(endpoint: Endpoint, fault: dict[str, Any]) -> None:
    provider, topic = Provider(**BOTH), Topic()
    provider.inject(endpoint, nth=2, **fault)
    with pytest.raises(ApiError) as caught:
        await translate(provider, topic, mention(EVENT))
    assert not isinstance(caught.value, Forbidden)
    assert topic == {}


@pytest.mark.parametrize("fault", [*FAULTS, {"status": 403}])
@pytest.mark.parametrize("endpoint", [x for x in TRANSLATIONS if x[:-1] not in LISTED])
async def test_one_thing_that_fails_is_left_out_and_owed(endpoint: Endpoint, fault: dict[str, Any]) -> None:
    provider, topic, whole = Provider(**BOTH), Topic(), Topic()
    await translate(Provider(**BOTH), whole, mention(EVENT, OTHER))
    provider.inject(endpoint, **fault)
    if "templates" in endpoint and fault != {"status": 403}:
        provider.inject(endpoint, times=8, **fault)  # down to the first id
    outcome = await translate(provider, topic, mention(EVENT, OTHER), settings=api(concurrency=1))
    if (endpoint, fault) == ("all-markets", {"status": 403}):
        return  # each language has reported what is missing
    assert {left.endpoint for left in outcome.left_out} == {
        next(path for path in PATHS if matches(path, endpoint))
    }
    assert outcome.owed
    missing = whole.texts().keys() - topic.texts().keys()
    assert all(texts.items() <= whole.texts()[key].items() for key, texts in topic.texts().items())
    assert topic.texts() != whole.texts()
    assert {kind_of(key) for key in missing} <= KINDS_OF[endpoint]
    provider.rest.faults.clear()
    provider.asked()
    again = await translate(provider, topic, mention())
    assert (again.left_out, again.owed) == ((), set())
    assert topic.texts() == whole.texts()
    asked = ASKED_WITH.get(endpoint, {endpoint})
    assert {*provider.asked()} <= {"sports", "regions", "leagues", "competitors", *asked}


ASKED_WITH: dict[str, set[str]] = {
    "all-event": {"all-event", *(f"all-{kind}" for kind in LISTED)},
    **{endpoint: {"all-markets", "markets"} for endpoint in ("all-markets", "markets")},
}
"""What has to be asked to make up for an endpoint, if it is not that alone."""


@pytest.mark.parametrize("bad", [0, 49, 99])
async def test_a_chunk_that_is_refused_is_halved_until_the_id_is_found(bad: int) -> None:
    references = Usage()
    for number in range(1, 101):
        references.add(bet([item(None, selectionId=number)]))

    provider = Provider()
    provider.wrong[rf"selectionIds={bad + 1}\b"] = ApiError
    outcome = await translate(provider, Topic(), references)
    assert [left.id for left in outcome.left_out] == [str(bad + 1)]
    assert outcome.owed == {f"selection-template:{bad + 1}"}
    assert provider.attempts[Questions(api()).selection_templates([bad + 1]).target] == 2, "not five"


async def test_more_than_a_share_that_fails_ends_the_run() -> None:
    references = alone(*range(1_000, 1_030))
    provider, topic = Provider(), Topic()

    def tried(*numbers: int) -> list[int | None]:
        return [provider.attempts[Questions(api()).event(number).target] for number in numbers]

    provider.wrong["event/102"] = ApiError
    outcome = await translate(provider, topic, references)
    assert len(outcome.left_out) == 10
    assert tried(1_029, 1_020, 1_000) == [api().attempts, 2, 2]
    provider.wrong["event/101"] = ApiError
    outcome = await translate(provider, topic, references, settings=api(concurrency=1))
    assert len(outcome.left_out) == 20
    assert tried(1_029) == [2], "what was owed is tried twice"
    provider.wrong["event/100"] = ApiError
    topic.owed = set()
    with pytest.raises(ApiError, match=r"11 of 30 things failed, .* api\.max_left_out_share = 0\.1"):
        await translate(provider, topic, references)
    outcome = await translate(provider, topic, references, settings=api(max_left_out_share=1))
    assert len(outcome.owed) == 30


@pytest.mark.parametrize("error", [Unanswered, Forbidden])
async def test_a_zero_that_is_not_answered_is_owed(error: type[ApiError]) -> None:
    provider = Provider()
    provider.wrong["event/0$"] = error
    outcome = await translate(provider, Topic(), alone(0))
    assert outcome.owed == {"event:0"}


async def test_zero_may_be_none() -> None:
    zero = {"event": {"id": 0}, "market": {"id": 0, "type": 0}, "sportId": 0, "competitionId": 0}
    references = Usage()
    references.add(bet([item(None, **zero, countryId=0)]))
    references.add(bet([item(EVENT)]))
    provider, topic = Provider(), Topic()
    outcome = await translate(provider, topic, references)
    assert provider.asked()["all-event"] == 2
    assert (outcome.left_out, outcome.owed) == ((), set())
    without = Usage()
    without.add(bet([item(EVENT)]))
    assert outcome.coverage == (await translate(provider, Topic(), without)).coverage


@pytest.mark.parametrize("endpoint", ["all-sport", "all-region", "all-league", "all-competitor", "all-event"])
async def test_an_answer_about_another_id_is_left_out(endpoint: Endpoint) -> None:
    provider, topic = Provider(**BOTH), Topic()
    body = orjson.dumps({"id": 999_999, "translations": {"en": "x"}}).decode()
    if endpoint == "all-event":
        other = provider.rest.answer(NOW, f"/api/translations/all/event/{OTHER.id}", provider.authorization)
        body = other.body.decode()
    provider.inject(endpoint, body=body)
    outcome = await translate(provider, topic, mention(EVENT), settings=api(concurrency=1))
    (left,) = outcome.left_out
    assert matches(left.endpoint, endpoint)
    assert "answered about another id: " in left.why
    assert outcome.owed == {f"{endpoint[4:]}:{left.id}"}
    assert not {key for key in topic if key.endswith((b":999999", f"event:{OTHER.id}".encode()))}


@pytest.mark.parametrize("endpoint", ["selection-templates", "market-type-templates"])
async def test_templates_that_nobody_asked_for_are_left_out(endpoint: Endpoint) -> None:
    asked_for = EVENT.markets[0].selections[0] if endpoint == "selection-templates" else EVENT.markets[0].type
    entities = [{"id": number, "translations": {"en": "x"}} for number in (asked_for, 999_999)]
    provider, topic = Provider(), Topic()
    provider.answers(endpoint, entities)
    await translate(provider, topic, mention(EVENT))
    found = {int(key.rpartition(b":")[2]) for key in topic if key.startswith(endpoint[:-1].encode())}
    assert found == {asked_for}
    provider.rest.faults.clear()
    provider.answers(endpoint, entities[1:])
    assert (await translate(provider, topic, mention(EVENT), full=True)).owed


@pytest.mark.parametrize("error", [AuthError, asyncio.CancelledError])
async def test_a_failure_leaves_no_question_under_way(error: type[BaseException]) -> None:
    async def fail(_: object) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        raise error

    provider = Provider()
    provider.wrong[f"event/{WORLD.events[-1].id}"] = fail  # the others never answer
    provider.wrong["event/"] = lambda _: asyncio.Event().wait()
    with pytest.raises(error):
        await translate(provider, Topic(), mention(*WORLD.events), settings=api(concurrency=8))
    assert provider.most_at_once == 8
    assert asyncio.all_tasks() == {asyncio.current_task()}


def half_a_character(*place: Any) -> Callable[[Any], None]:
    """Return a change that puts an invalid text at a place in an answer."""

    def change(content: Any) -> None:
        for step in place[:-1]:
            content = content[step]
        content[place[-1]] = "\ud83d"

    return change


async def test_an_invalid_part_of_an_answer_is_left_out_alone() -> None:
    whole, topic = Topic(), Topic()
    await translate(Provider(), whole, mention(EVENT, OTHER))
    listed = await Provider().ask(Questions(api()).listed("competitor", "sv"))
    ids = [x["id"] for x in listed.content or ()]
    mine = {x.id for event in (EVENT, OTHER) for x in event.competitors}
    known, unknown = (next(x for x in ids if (x in mine) is there) for there in (True, False))
    selection = EVENT.markets[0].selections[1]

    def spoil_both(items: Any) -> None:
        for number in (known, unknown):
            half_a_character(ids.index(number), "translation")(items)

    provider = Provider()
    provider.wrong = {
        "sv/competitors": spoil_both,
        f"all/event/{EVENT.id}": half_a_character("eventTranslation", "translations", "sv"),
        f"all/{EVENT.id}/markets": half_a_character(0, "selections", 1, "translations", "de"),
        f"de/{EVENT.id}/markets": half_a_character(0, "selections", 1, "translation"),
    }
    outcome = await translate(provider, topic, mention(EVENT, OTHER))
    assert {left.id for left in outcome.left_out} == {str(unknown), str(EVENT.id)}
    assert outcome.owed == {f"event:{EVENT.id}", f"markets:{EVENT.id}"}
    lacking = {
        f"event:{EVENT.id}": "sv",
        f"selection:{selection}": "de",
        f"competitor:{unknown}": "sv",
    }
    expected = whole.texts()
    for key, language in lacking.items():
        del expected[key.encode()][language]
    assert topic.texts() == expected
    again = await translate(Provider(), topic, mention())
    assert (again.left_out, again.owed, topic.texts()) == ((), set(), whole.texts())


@pytest.mark.parametrize("by", ["all/event/", "sv/competitors"])
async def test_a_text_that_is_invalid_in_an_answer_is_kept(by: str) -> None:
    provider, topic = await first_run(EVENT, only_in_lists={"sv"} if "sv" in by else set())
    before = topic.texts()
    listed = await provider.ask(Questions(api()).listed("competitor", "sv"))
    mine = [x["id"] for x in listed.content or ()].index(EVENT.competitors[0].id)
    of_event = ("eventTranslation", "translations", "sv")
    provider.wrong[by] = half_a_character(*((mine, "translation") if "sv" in by else of_event))
    await translate(provider, topic, mention(EVENT), full=True)
    assert topic.texts() == before
