"""When a run is full, what its Snapshot record says, and what goes to the topic."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pydantic import SecretStr

from bridge.config import ApiSettings, KafkaSettings, RegistrySettings, Settings
from bridge.config.api import KINDS
from bridge.errors import Forbidden, SchemaError, SettingsError, Unanswered
from bridge.records import topics
from bridge.rest.endpoints import Questions, Request
from bridge.snapshots import job
from bridge.snapshots.model import Counts, Job
from bridge.snapshots.status import JobStatus
from bridge.snapshots.wanted import Task
from bridge_sandbox.provider.rest.routes import Endpoint
from tests.unit.snapshots.world import (
    BOTH,
    DAY,
    LANGUAGES,
    NOW,
    WORLD,
    Provider,
    Runs,
    alone,
    api,
    mention,
)

HOUR = 3_600.0
EVENT, OTHER, THIRD = WORLD.events[:3]
SWEDISH: dict[str, Any] = {"languages": ["sv"]}
SETTINGS = Settings(api=api())
REACHABLE = Settings(
    api=api(base_url="http://127.0.0.1:1", token=SecretStr("t")),
    kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"),
    registry=RegistrySettings(url="http://127.0.0.1:1"),
)
TASK = Task.translations(api())


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.mark.parametrize(
    ("narrowing", "change", "full"),
    [
        ({}, {}, False),
        ({}, {"refreshed_at": NOW - 23 * HOUR}, True),
        (SWEDISH, {"refreshed_at": NOW - 23 * HOUR}, False),
        ({}, {"refreshed_at": None}, True),
        ({}, {"refreshed_at": NOW + 2 * HOUR}, True),
        ({}, {"languages": ("en", "sv")}, True),
        ({}, {"languages": ("sv", "en", "de", "fr")}, False),
        ({}, {"counts": {"sport": Counts(records=1)}}, True),
        (SWEDISH, {"counts": {"sport": Counts(records=1)}}, True),
        ({}, {"owed": 1}, True),
    ],
)
def test_when_everything_is_fetched_again(
    runs: Runs, narrowing: dict[str, Any], change: dict[str, Any], full: bool
) -> None:
    runs.run(Provider())
    assert runs.full
    assert runs.last is not None
    runs.last = replace(runs.last, **change)
    runs.run(Provider(), **narrowing)
    assert runs.full is full


def test_currencies_have_no_languages_and_kinds() -> None:
    runs = Runs("currencies")
    runs.run(Provider(), settings=api(kinds=["sport"]))
    runs.run(Provider(), settings=api(languages=("en", "sv", "de", "fr")))
    assert not runs.full
    assert runs.last is not None
    assert runs.last.languages == ()


def test_the_record_of_a_run(runs: Runs) -> None:
    runs.bets(mention(EVENT))
    first = runs.run(Provider())
    assert (first.started_at, first.finished_at, first.refreshed_at) == (NOW, NOW, NOW)
    assert (first.complete, first.languages, first.position) == (True, LANGUAGES, {0: 1})
    assert first.counts["event"] == Counts(1, 1, 0)
    assert first.ends == {0: 7}
    second = runs.run(Provider())
    assert (second.started_at, second.refreshed_at) == (NOW + HOUR, NOW)
    assert second.counts["event"] == Counts(1, 0, 0)
    assert len(runs.records) == 1, "nothing but the Snapshot record: the state writes nothing either"
    runs.now = NOW
    assert first.id.startswith("20260921T141500.000000Z-")
    assert first.id != runs.run(Provider()).id


def test_the_record_of_a_narrowed_run(runs: Runs) -> None:
    alone = runs.run(Provider(), **SWEDISH)
    assert (alone.complete, alone.languages, alone.refreshed_at) == (False, ("sv",), None)
    assert alone.kinds == KINDS
    runs.run(Provider())
    found = runs.run(Provider(), full=True, **SWEDISH)
    assert (found.complete, found.languages, found.refreshed_at) == (False, LANGUAGES, NOW + HOUR)


def test_a_record_has_the_kinds_of_the_settings(runs: Runs) -> None:
    few = api(kinds=["event", "sport"])
    assert runs.run(Provider(), settings=few).kinds == ("sport", "event")
    assert runs.run(Provider(), settings=few, kinds=["sport"]).kinds == ("sport", "event")
    assert runs.last is not None
    runs.last = replace(runs.last, kinds=())
    runs.run(Provider())
    assert (runs.full, runs.last.kinds) == (False, KINDS)


def test_a_run_without_all_answers_is_partial(runs: Runs) -> None:
    runs.bets(mention(EVENT))
    runs.bets(alone(*range(9_000, 10_200)))
    provider = Provider(forbidden={"market-type-templates"})
    provider.inject("all-event", status=500, times=None)
    found = runs.run(provider, settings=api(max_left_out_share=1))
    assert found.forbidden == ("/api/translations/templates/market-types",)
    assert (found.complete, len(found.left_out)) == (False, 1_000)
    assert found.owed == len(runs.owed) > 1_000
    later = runs.run(Provider(), events=[5])
    assert (later.complete, later.left_out) == (False, ())
    assert later.owed > 1_000


@pytest.mark.parametrize(("patience", "last_moment"), [(None, None), (job.BUSY_SECONDS, job.PUBLISH_SECONDS)])
def test_a_retry_of_kafka_is_no_progress(
    monkeypatch: pytest.MonkeyPatch, patience: float | None, last_moment: float | None
) -> None:
    progress: list[str] = []
    fakes = {name: MagicMock() for name in ("Client", "Lock", "Publisher", "Registry", "make_snapshot")}
    for name, fake in fakes.items():
        monkeypatch.setattr(job, name, fake)
    monkeypatch.setattr(topics, "ensure", lambda *_: None)
    job.run(REACHABLE, TASK, lambda what, *_: progress.append(what), threading.Event(), patience=patience)
    *_, on_error = fakes["Lock"].call_args.args
    on_error("on purpose")
    assert progress == ["waiting for its turn"]
    assert fakes["Publisher"].call_args.args[-1] == last_moment


def test_what_goes_to_the_topic(runs: Runs) -> None:
    runs.bets(mention(EVENT))
    runs.run(Provider())
    provider = Provider()
    provider.catalogue.rename("sport", EVENT.league.sport.id, "Neu")
    runs.bets(mention(OTHER))
    runs.now += 40 * DAY
    runs.bets(mention(OTHER))
    found = runs.run(provider)
    assert f"event:{EVENT.id}".encode() in runs.removed
    sport = f"sport:{EVENT.league.sport.id}".encode()
    assert runs.topic.codec.decode(runs.topic[sport])["snapshotId"] == found.id
    assert {record.timestamp for record in runs.records} == {round(found.started_at * 1000)}


def test_a_name_too_large_for_a_record_holds_nothing_up(runs: Runs) -> None:
    runs.bets(mention(EVENT, OTHER))
    provider = Provider()
    names = {f"l{n}": "😀" * 10_000 for n in range(30)}
    provider.wrong[f"event/{OTHER.id}"] = lambda event: event["eventTranslation"].update(translations=names)
    found = runs.run(provider)
    key = f"event:{OTHER.id}"
    [(_, id_, why)] = found.left_out
    assert id_ == key
    assert re.fullmatch(r"1,20\d,\d+ bytes of names, more than Kafka's 1,000,000", why)
    assert runs.owed == {key}
    assert key.encode() not in runs.topic
    assert f"event:{EVENT.id}".encode() in runs.topic


def test_all_settings_that_a_run_lacks_are_reported_at_once() -> None:
    with_file = Settings(api=ApiSettings(base_url="http://127.0.0.1:1", token_file=Path("token")))
    for settings, expected in (
        (Settings(), ["api.base_url", "api.token", "kafka.bootstrap_servers", "registry.url"]),
        (with_file, ["kafka.bootstrap_servers", "registry.url", "BRIDGE_API__TOKEN_FILE:"]),
    ):
        with pytest.raises(SettingsError) as caught:
            job.run(settings, TASK, lambda *_: None, threading.Event())
        assert [line.split()[0] for line in str(caught.value).splitlines()] == expected


# What must hold for runs in any order, of a provider that lies and topics that are lost.


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
        if failing:
            provider.inject(*failing, status=500, times=None)
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


def test_the_coverage_of_what_was_owed_is_that_of_the_answer(runs: Runs) -> None:
    provider = Provider()
    provider.inject("all-event", "all-markets", "markets", status=500, times=None)
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


@pytest.mark.parametrize("fault", [{"body": "[]"}, {"status": 404}])
def test_without_a_right_to_all_markets_an_event_that_has_none_any_more_is_not_owed(
    runs: Runs, fault: dict[str, Any]
) -> None:
    runs.bets(mention(EVENT, OTHER))
    provider = Provider()
    provider.inject("all-markets", status=403, times=None)
    provider.inject("markets", times=None, **fault)
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


@pytest.mark.parametrize("status", [403, 500])
def test_a_text_whose_request_is_refused_is_kept(runs: Runs, status: int) -> None:
    runs.bets(mention(EVENT, OTHER, THIRD))
    provider = Provider(only_in_all={"sv"})

    def in_swedish_only_by_id(event: Any) -> None:
        for member in (event["sport"], event["region"], event["league"], *event["competitors"]):
            member["translations"].pop("sv", None)

    provider.wrong["all/event"] = in_swedish_only_by_id
    runs.run(provider)
    before = runs.topic.texts()
    provider.inject("all-league", "all-competitor", "all-sport", "all-region", status=status, times=None)
    runs.run(provider, full=True, settings=api(max_left_out_share=1))
    assert runs.topic.texts() == before


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
