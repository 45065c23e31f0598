"""What must hold for runs in any order, of a provider that lies and topics that are lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from bridge.config.api import KINDS
from bridge.errors import Forbidden, SchemaError, Unanswered
from bridge.rest.endpoints import Questions, Request
from bridge.snapshots.model import Job
from bridge.snapshots.status import JobStatus
from bridge.snapshots.usage import Usage
from bridge_sandbox.provider.rest.routes import Endpoint
from tests.unit.snapshots.world import (
    BOTH,
    DAY,
    WORLD,
    Provider,
    Runs,
    api,
    bet,
    item,
    mention,
)

EVENT, OTHER, THIRD = WORLD.events[:3]


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.mark.parametrize("failing", [(), ("all-event",), ("all-markets", "markets")])
@pytest.mark.parametrize(
    "narrowing", [{"languages": ["en"]}, {"events": [EVENT.id]}, {"kinds": ["event"]}, {"kinds": ["market"]}]
)
@pytest.mark.parametrize("lost", [False, True])
def test_what_a_narrowed_run_leaves_out_the_next_run_publishes(
    narrowing: dict[str, Any], failing: tuple[Endpoint, ...], lost: bool
) -> None:
    def texts_after(*narrowed: dict[str, Any]) -> dict[bytes, dict[str, str]]:
        runs, provider = Runs(), Provider(**BOTH)
        runs.bets(mention(EVENT))
        runs.run(provider)
        runs.bets(mention(OTHER))
        for endpoint in failing:
            provider.inject(endpoint, status=500, times=None)
        if failing:
            assert runs.run(provider).owed == 1
        if lost:
            runs.topic.clear()
        runs.bets(mention(THIRD))
        for options in narrowed:
            assert not runs.run(Provider(**BOTH), **options).complete
        assert runs.run(Provider(**BOTH)).complete
        return runs.topic.texts()

    assert texts_after(narrowing) == texts_after()


def test_a_token_without_a_right_has_whole_runs_of_the_kinds_that_it_may_read(runs: Runs) -> None:
    provider = Provider(forbidden={"selection-templates", "market-type-templates"})
    runs.bets(mention(EVENT, OTHER))
    assert runs.run(provider).owed
    allowed = [kind for kind in KINDS if not kind.endswith("template")]
    snapshot = runs.run(provider, settings=api(kinds=allowed))
    assert (snapshot.complete, snapshot.owed, runs.report.full) == (True, 0, False)
    assert {row.kind for row in runs.report.coverage} <= {*allowed}
    runs.now += 31 * DAY
    runs.bets(mention(OTHER))
    provider.catalogue.rename("event", OTHER.id, "Neu")
    snapshot = runs.run(provider, settings=api(kinds=allowed))
    assert (snapshot.complete, runs.report.full) == (True, True)
    assert f"event:{EVENT.id}".encode() in runs.removed
    assert runs.topic.translation(f"event:{OTHER.id}").texts["en"] == "Neu"
    snapshot = runs.run(Provider())
    assert (snapshot.complete, runs.report.full) == (True, True)
    assert f"selection-template:{OTHER.markets[0].selections[0]}".encode() in runs.topic


def test_what_comes_along_of_a_kind_that_is_not_asked_for_is_published(runs: Runs) -> None:
    provider = Provider(forbidden={"competitors", "all-competitor"}, only_in_lists={"sv"})
    runs.bets(mention(EVENT))
    runs.run(Provider(**BOTH))
    before = runs.topic.texts()
    others = api(kinds=[kind for kind in KINDS if kind != "competitor"])
    provider.catalogue.rename("competitor", EVENT.competitors[0].id, "Neu")
    snapshot = runs.run(provider, settings=others, full=True)
    assert (snapshot.complete, provider.asked()["competitors"]) == (True, 0)
    competitor = f"competitor:{EVENT.competitors[0].id}".encode()
    assert runs.topic.texts()[competitor]["de"] == "Neu"
    assert runs.topic.texts()[competitor].keys() == before[competitor].keys()


def test_the_coverage_of_what_was_owed_is_that_of_the_answer(runs: Runs) -> None:
    provider = Provider()
    provider.inject("all-event", status=500, times=None)
    provider.inject("all-markets", status=500, times=None)
    provider.inject("markets", status=500, times=None)
    runs.bets(mention(EVENT))
    runs.run(provider)
    status = JobStatus.of(runs.report)
    failed = {kind for kind, row in status.coverage.items() if row.share("en") < 1}
    assert failed == {"event", "market", "selection"}
    provider.rest.faults.clear()
    runs.run(provider)
    status.publish(runs.report)
    assert {kind for kind, row in status.coverage.items() if row.share("en") < 1} == set()


def test_what_a_list_lacked_is_forgotten_with_its_kind_but_not_in_a_narrowed_run(runs: Runs) -> None:
    runs.run(Provider())
    short = Provider()
    short.answers("leagues", [])
    runs.run(short, full=True)
    missing = runs.state().refused["missing"]
    assert missing
    runs.run(Provider(), kinds=["sport"])
    assert runs.state().refused["missing"] == missing
    runs.run(Provider(), settings=api(kinds=["sport"]))
    assert not runs.state().refused["missing"]


@pytest.mark.parametrize("narrowing", [{"kinds": ["event"]}, {"kinds": ["market"]}, {"languages": ["en"]}])
def test_runs_that_are_always_narrowed_do_not_ask_again(runs: Runs, narrowing: dict[str, Any]) -> None:
    for event in (EVENT, OTHER, THIRD):
        runs.bets(mention(event))
        provider = Provider(**BOTH)
        snapshot = runs.run(provider, **narrowing)
        assert (snapshot.complete, snapshot.owed) == (False, 0)
        asked = [exchange.target for exchange in provider.rest.requests]
        found = {it.id for it in (EVENT, OTHER, THIRD) if any(str(it.id) in target for target in asked)}
        assert found == {event.id}
    assert runs.run(Provider(**BOTH)).complete


EVENT_IDS = [event.id for event in WORLD.events]
SYMBOLS = [f"X{letter}" for letter in "ABCDEFGHIJKL"]


@pytest.mark.parametrize(
    ("job", "kind", "ids", "request_of"),
    [
        ("translations", "event", EVENT_IDS, Questions(api()).event),
        ("currencies", "currency", SYMBOLS, Questions(api()).currency_precision),
    ],
)
def test_what_always_fails_does_not_keep_the_rest_from_being_asked_about(
    job: Job, kind: str, ids: list[Any], request_of: Callable[[Any], Request[Any]]
) -> None:
    runs = Runs(job)
    settings = api(max_left_out_share=1, concurrency=1)
    provider = Provider()
    provider.answers("currency-precision", {"precision": 2})
    runs.bets(mention(*WORLD.events, currencies=SYMBOLS))

    def run(broken: list[Any]) -> None:
        provider.wrong = {re.escape(request_of(x).target): Unanswered for x in broken}
        runs.run(provider, settings=settings)

    run(ids)
    owed = {name for name in runs.owed if name.startswith(f"{kind}:")}
    assert owed == {f"{kind}:{x}" for x in ids}
    broken = sorted(ids)[:8]
    for _ in range(30):
        run(broken)
    assert {name for name in runs.owed if name.startswith(f"{kind}:")} == {f"{kind}:{x}" for x in broken}


def test_what_was_owed_of_old_bets_is_reported_although_the_state_is_lost(runs: Runs) -> None:
    runs.bets(mention(OTHER))
    runs.run(Provider())
    runs.bets(mention(EVENT))
    provider = Provider()
    provider.inject("all-event", status=500, times=None)
    for _ in range(5):
        snapshot = runs.run(provider)
        runs.now += DAY
    assert snapshot.owed
    runs.bets(mention(OTHER))
    runs.state_topic.clear()
    snapshot = runs.run(Provider())
    assert not snapshot.complete or f"event:{EVENT.id}".encode() in runs.topic


def test_what_no_bet_mentions_any_more_is_not_owed(runs: Runs) -> None:
    settings = api(keep_days=5, max_left_out_share=1)
    runs.bets(mention(EVENT))
    provider = Provider()
    provider.inject("all-event", status=500, times=None)
    runs.run(provider, settings=settings)
    for _ in range(10):
        runs.now += DAY
        runs.bets(Usage())
        other = Usage()
        other.add(bet([item(None, sportId=WORLD.events[0].league.sport.id)]))
        runs.bets(other)
        snapshot = runs.run(provider, full=True, settings=settings)
    assert snapshot.owed == 0


def test_a_404_confirms_that_a_name_is_gone(runs: Runs) -> None:
    settings = api(max_shrink_share=1)
    runs.bets(mention(EVENT))
    provider = Provider()
    runs.run(provider, settings=settings)
    mine = {x.id for x in EVENT.competitors}
    others = [x for x in WORLD.competitors if x.id not in mine][:20]
    for competitor in others:
        provider.catalogue.remove("competitor", competitor.id)
    provider.inject("all-competitor", status=404, times=None)
    snapshot = runs.run(provider, full=True, settings=settings)
    assert (snapshot.complete, snapshot.owed) == (True, 0)
    assert runs.removed == {f"competitor:{competitor.id}".encode() for competitor in others}


def test_a_selection_that_bets_mention_outlives_another_event_that_had_it(runs: Runs) -> None:
    settings = api(keep_days=5, recent_days=1)
    early, late = sorted((EVENT, OTHER), key=lambda event: event.id)
    selection = early.markets[0].selections[0]
    provider = Provider()
    body = [
        {
            "marketTypeId": 1,
            "marketTranslations": {"id": 5, "translations": {"en": "a", "sv": "a", "de": "a"}},
            "selections": [{"id": selection, "translations": {"en": "a", "sv": "a", "de": "a"}}],
        }
    ]
    runs.bets(mention(late))
    provider.answers("all-markets", body, times=1)
    runs.run(provider, settings=settings)
    runs.now += 3 * DAY
    runs.bets(mention(early))
    runs.run(provider, settings=settings)
    assert f"selection:{selection}".encode() in runs.topic
    runs.now += 3 * DAY
    runs.bets(mention(THIRD))
    runs.run(provider, full=True, settings=settings)
    assert f"selection:{selection}".encode() not in runs.removed


def test_what_events_in_use_belong_to_is_never_removed(runs: Runs) -> None:
    settings = api(max_shrink_share=1)
    references = Usage()
    references.add(bet([item(EVENT, competitionId=987654, countryId=876543)]))
    runs.bets(references)
    provider = Provider()
    runs.run(provider, settings=settings)
    league = EVENT.league.id
    provider.catalogue.remove("league", league)
    provider.inject("all-event", status=500, times=None)
    runs.run(provider, full=True, settings=settings)
    assert f"league:{league}".encode() not in runs.removed


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"translations/in-use/event:7", b"\xff"),
        (b"translations/in-use/event:7", b'{"at": 1790000000, "run": 1}'),
        (
            b"translations/in-use/event:seven",
            b'{"at": 1790000000, "run": 1, "place": [1,1,1], "markets": [], "selections": []}',
        ),
        (b"translations/in-use/sport:7", b"[]"),
        (b"translations/in-use/sport:7", b'{"at": "x", "run": 1}'),
        (b"translations/owed/0", b"{"),
        (b"translations/owed/0", b'["event:seven"]'),
        (b"translations/owed/0", b"[7]"),
        (b"translations/read", b"[]"),
        (b"translations/read", b'{"position": 7}'),
        (b"translations/seen", b"7"),
    ],
)
def test_garbage_in_the_state_is_passed_over(runs: Runs, key: bytes, value: bytes) -> None:
    runs.state_topic[key] = value
    runs.bets(mention(EVENT))
    runs.run(Provider())
    assert f"event:{EVENT.id}".encode() in runs.topic


def test_a_refusal_of_one_language_is_not_made_up_for_by_the_others(runs: Runs) -> None:
    runs.bets(mention(EVENT))
    market = f"market:{EVENT.id}:{EVENT.markets[0].id}"
    provider = Provider()
    provider.answers("all-markets", [])
    provider.wrong["/sv/.*/markets"] = Forbidden
    assert (runs.run(provider).complete, runs.owed) == (False, {f"markets:{EVENT.id}"})
    provider.wrong.clear()
    assert runs.run(provider).complete
    assert "sv" in runs.topic.translation(market).texts


@pytest.mark.parametrize("status", [None, 404])
def test_without_a_right_to_all_markets_an_event_that_has_none_any_more_is_not_owed(
    runs: Runs, status: int | None
) -> None:
    runs.bets(mention(EVENT, OTHER))
    provider = Provider()
    provider.inject("all-markets", status=403, times=None)
    if status is None:
        provider.answers("markets", [])
    else:
        provider.inject("markets", status=status, times=None)
    runs.run(provider)
    assert runs.owed == set()


def test_a_run_in_one_language_leaves_what_is_owed_in_another(runs: Runs) -> None:
    policy: dict[str, Any] = {"only_in_all": {"sv"}, "event_members": "ids"}
    runs.bets(mention(EVENT))
    provider = Provider(**policy)
    provider.inject("all-league", status=500, times=None)
    runs.run(provider)
    runs.run(Provider(**policy), languages=["en"])
    assert runs.owed
    assert runs.run(Provider(**policy)).complete
    assert "sv" in runs.topic.translation(f"league:{EVENT.league.id}").texts


def in_swedish_only_by_id(event: Any) -> None:
    """Change an answer about an event."""
    for member in (event["sport"], event["region"], event["league"], *event["competitors"]):
        member["translations"].pop("sv", None)


@pytest.mark.parametrize("status", [403, 500])
def test_a_text_whose_request_is_refused_is_kept(runs: Runs, status: int) -> None:
    endpoints: list[Endpoint] = ["all-league", "all-competitor", "all-sport", "all-region"]
    runs.bets(mention(EVENT, OTHER, THIRD))
    provider = Provider(only_in_all={"sv"})
    provider.wrong["all/event"] = in_swedish_only_by_id
    runs.run(provider)
    before = runs.topic.texts()
    for endpoint in endpoints:
        provider.inject(endpoint, status=status, times=None)
    runs.run(provider, full=True, settings=api(max_left_out_share=1))
    assert runs.topic.texts() == before


def test_a_competitor_of_an_event_of_this_run_is_not_removed(runs: Runs) -> None:
    competitor = EVENT.competitors[0].id
    before = next(e for e in WORLD.events if competitor not in {c.id for c in e.competitors})
    provider = Provider()
    runs.bets(mention(before))
    runs.run(provider)
    assert f"competitor:{competitor}".encode() in runs.topic
    provider.catalogue.remove("competitor", competitor)
    runs.bets(mention(EVENT))
    runs.run(provider, full=True, settings=api(max_shrink_share=1))
    assert f"competitor:{competitor}".encode() in runs.topic


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("job", ["translations", "currencies"])
def test_records_of_a_schema_that_the_registry_does_not_know_end_the_run(job: Job, full: bool) -> None:
    runs = Runs(job)
    runs.bets(mention(EVENT))
    runs.run(Provider())
    for key, value in runs.topic.items():
        runs.topic[key] = value[:1] + (9).to_bytes(4, "big") + value[5:]
    with pytest.raises(SchemaError, match="schema 9"):
        runs.run(Provider(), full=full)
