"""When a run is full, what its Snapshot record says, and what goes to the topic."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pydantic import SecretStr

from bridge.config import ApiSettings, KafkaSettings, RegistrySettings, Settings
from bridge.config.api import KINDS
from bridge.errors import SettingsError
from bridge.records import topics
from bridge.snapshots import job
from bridge.snapshots.model import Counts
from bridge.snapshots.wanted import Task
from tests.unit.snapshots.world import DAY, LANGUAGES, NOW, WORLD, Provider, Runs, alone, api, mention

HOUR = 3_600.0
EVENT, OTHER = WORLD.events[:2]
SWEDISH: dict[str, Any] = {"languages": ["sv"]}
SETTINGS = Settings(api=api())
REACHABLE = Settings(
    api=api(base_url="http://127.0.0.1:1", token=SecretStr("t")),
    kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"),
    registry=RegistrySettings(url="http://127.0.0.1:1"),
)
TASK = Task.translations(api())


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
    narrowing: dict[str, Any], change: dict[str, Any], full: bool
) -> None:
    runs = Runs()
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


def test_the_record_of_a_run() -> None:
    runs = Runs()
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


def test_the_record_of_a_narrowed_run() -> None:
    runs = Runs()
    alone = runs.run(Provider(), **SWEDISH)
    assert (alone.complete, alone.languages, alone.refreshed_at) == (False, ("sv",), None)
    assert alone.kinds == KINDS
    runs.run(Provider())
    found = runs.run(Provider(), full=True, **SWEDISH)
    assert (found.complete, found.languages, found.refreshed_at) == (False, LANGUAGES, NOW + HOUR)


def test_a_record_has_the_kinds_of_the_settings() -> None:
    runs, few = Runs(), api(kinds=["event", "sport"])
    assert runs.run(Provider(), settings=few).kinds == ("sport", "event")
    assert runs.run(Provider(), settings=few, kinds=["sport"]).kinds == ("sport", "event")
    assert runs.last is not None
    runs.last = replace(runs.last, kinds=())
    runs.run(Provider())
    assert (runs.full, runs.last.kinds) == (False, KINDS)


def test_a_run_without_all_answers_is_partial() -> None:
    runs = Runs()
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


def test_what_goes_to_the_topic() -> None:
    runs = Runs()
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


def test_a_name_too_large_for_a_record_holds_nothing_up() -> None:
    runs = Runs()
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
