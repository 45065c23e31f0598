"""When a run is full, what its Snapshot record says, and what goes to the topic."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import ApiSettings, KafkaSettings, RegistrySettings, Settings
from bridge.errors import SettingsError
from bridge.kafka import topics
from bridge.snapshots import job
from bridge.snapshots.job import Task
from bridge.snapshots.model import Counts, LeftOut, Snapshot, Translation
from bridge.snapshots.plan import JobInput, Scope
from bridge.snapshots.references import References
from bridge.snapshots.results import Outcome

NOW = 1_790_000_000.0
HOUR = 3600.0
API = ApiSettings(languages=("en", "sv"), refresh_hours=24)
SETTINGS = Settings(api=API)
LAST = Snapshot("translations", "last", NOW, NOW, NOW - HOUR, True, ("en", "sv"), position={0: 5})
WHOLE = Scope.of(API)
NARROWED = Scope.of(API, languages=["sv"])


def task(scope: Scope = WHOLE) -> Task:
    return Task("translations", scope)


@pytest.mark.parametrize(
    ("scope", "last", "due"),
    [
        (WHOLE, None, True),
        (NARROWED, None, True),
        (WHOLE, LAST, False),
        (WHOLE, replace(LAST, refreshed_at=NOW - 24 * HOUR), True),
        (NARROWED, replace(LAST, refreshed_at=NOW - 24 * HOUR), False),
        (WHOLE, replace(LAST, refreshed_at=None), True),
        (WHOLE, replace(LAST, refreshed_at=NOW + HOUR), True),
        (WHOLE, replace(LAST, languages=("en",)), True),
        (WHOLE, replace(LAST, languages=("sv", "en", "de")), False),
    ],
)
def test_when_all_is_asked_anew(scope: Scope, last: Snapshot | None, due: bool) -> None:
    """At first, when it is long ago, and when there is a new language; a narrowed run is never overdue."""
    assert job._is_due(SETTINGS, task(scope), last, NOW) == due


def test_currencies_have_no_languages() -> None:
    """A language that is new in the settings does not concern them."""
    last = replace(LAST, job="currencies", languages=())
    assert not job._is_due(SETTINGS, Task("currencies", WHOLE), last, NOW)


def snapshot(scope: Scope, known: JobInput, **outcome: Any) -> Snapshot:
    """That of a run which began now and had all answers after 5 s."""
    found = Outcome({}, set(), {"sport": Counts(3, 2, 1)}, **outcome)
    return job._snapshot(job._id(NOW), task(scope), known, found, {0: 9, 1: 4}, NOW, NOW + 5)


def known(last: Snapshot | None = LAST, *, full: bool = False) -> JobInput:
    return JobInput(last, {}, References(), full)


def test_a_topic_that_was_made_anew_is_filled_anew() -> None:
    """It has other records than the last snapshot left there."""
    last = replace(LAST, counts={"sport": Counts(records=1), "league": Counts(records=2)})
    assert not job._is_lost(None, [])
    assert not job._is_lost(last, [b"sport:1", b"league:1", b"league:2"])
    assert job._is_lost(last, [])


def test_the_record_of_a_whole_run() -> None:
    """It has the position that was read up to; of a full one, also when that was."""
    found = snapshot(WHOLE, known())
    assert (found.started_at, found.finished_at, found.refreshed_at) == (NOW, NOW + 5, NOW - HOUR)
    assert (found.complete, found.languages, found.position) == (True, ("en", "sv"), {0: 9, 1: 4})
    assert found.counts == {"sport": Counts(3, 2, 1)}
    assert snapshot(WHOLE, known(full=True)).refreshed_at == NOW
    assert snapshot(WHOLE, known(None, full=True)).refreshed_at == NOW


def test_ids_sort_by_time_and_never_meet() -> None:
    """Two that begin in the same microsecond differ."""
    first, second = snapshot(WHOLE, known()).id, snapshot(WHOLE, known()).id
    assert first.startswith("20260921T141320.000000Z-")
    assert first != second


def test_the_record_of_a_narrowed_run() -> None:
    """What it left out is left for the next: languages and time of refreshment stay."""
    found = snapshot(NARROWED, known(full=True))
    assert (found.complete, found.languages) == (False, ("en", "sv"))
    assert found.refreshed_at == NOW - HOUR
    first = snapshot(NARROWED, known(None, full=True))
    assert (first.languages, first.refreshed_at) == (("sv",), None)


def test_a_run_that_was_not_told_all_is_partial() -> None:
    """And says what was not, the first thousand of it; so is one that owes something which it did not ask."""
    left = tuple(LeftOut("/api/x", str(number), "500") for number in range(1_200))
    found = snapshot(WHOLE, known(), forbidden=("/api/y",), left_out=left, owed=frozenset(["event:7"]))
    assert (found.complete, found.forbidden, found.owed) == (False, ("/api/y",), 1)
    assert found.left_out == left[:1_000]
    assert not snapshot(WHOLE, known(), owed=frozenset(["event:7"])).complete


@pytest.mark.parametrize(("patience", "last_moment"), [(None, None), (job.BUSY_SECONDS, job.PUBLISH_SECONDS)])
def test_a_trouble_is_no_movement(
    monkeypatch: pytest.MonkeyPatch, patience: float | None, last_moment: float | None
) -> None:
    """A job that publishes in vain would pass for healthy for ever. One that runs once has a last moment."""
    moves: list[str] = []
    given: list[Any] = []

    def publisher(*arguments: Any) -> Any:
        given[:] = arguments
        made = MagicMock()
        made.__enter__().open = lambda _: given[4]("on purpose")
        return made

    settings = SETTINGS.model_copy(
        update={
            "kafka": KafkaSettings(bootstrap_servers="127.0.0.1:1"),
            "registry": RegistrySettings(url="http://127.0.0.1:1"),
        }
    )
    for name in ("Client", "Lock", "Registry"):
        monkeypatch.setattr(job, name, MagicMock())
    monkeypatch.setattr(topics, "ensure", lambda *_: None)
    monkeypatch.setattr(job, "Publisher", publisher)
    monkeypatch.setattr(job, "_run", lambda *_: None)
    job.run(settings, task(), lambda what, *_: moves.append(what), threading.Event(), patience=patience)
    assert moves == ["its turn"]
    assert given[5] == last_moment


def test_what_goes_to_the_topic() -> None:
    """Tombstones and records with the id of their snapshot, at one moment; what is encoded is let go."""
    codec = Codec(load("translation"), 7)
    sport = Translation("sport", 1, {"en": "Football"})
    outcome = Outcome({sport.key: sport}, {b"sport:3", b"sport:2"}, {})
    *gone, written = job._records(outcome, "t.translations", codec, "the-id", NOW)
    assert [(record.key, record.value) for record in gone] == [(b"sport:2", None), (b"sport:3", None)]
    assert written.value is not None
    assert codec.decode(written.value) == sport.to_avro("the-id")
    assert {(record.topic, record.timestamp) for record in (*gone, written)} == {
        ("t.translations", round(NOW * 1000))
    }
    assert outcome.written == {}


def test_a_name_too_large_for_a_record_holds_nothing_up() -> None:
    """It is left out, told and owed."""
    long = Translation("event", 1, {f"l{n}": "😀" * 10_000 for n in range(30)})
    good = Translation("event", 2, {"en": "a"})
    codec = Codec(load("translation"), 7)
    outcome = Outcome({x.key: x for x in (long, good)}, set(), {})
    written = job._records(outcome, "t", codec, "id", NOW)
    assert [record.key for record in written] == [b"event:2"]
    assert [(left.id, left.why) for left in outcome.left_out] == [
        ("event:1", "1,200,223 bytes of names, more than Kafka's 1,000,000")
    ]
    assert outcome.owed == {"event:1"}


def test_settings_are_looked_at_first() -> None:
    """Neither Kafka nor the provider is asked anything before."""
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"),
        registry=RegistrySettings(url="http://127.0.0.1:1"),
    )
    for given, name in ((SETTINGS, "kafka.bootstrap_servers"), (settings, "api.token")):
        with pytest.raises(SettingsError, match=name):
            job.run(given, task(), lambda *_: None, threading.Event())
