"""What a run that takes long publishes before its end, and what is left of it when it is killed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from bridge.config.api import KINDS, LISTED
from bridge.snapshots import translations
from bridge.snapshots.asking import Account
from bridge.snapshots.job import PORTION_SECONDS
from bridge.snapshots.model import Snapshot, Translation, kind_of
from bridge.snapshots.published import Published
from tests.unit.snapshots.world import BOTH, DAY, WORLD, Provider, Runs, Topic, api, mention

ORDERLY = api(concurrency=1)
EVENTS = sorted((event.id for event in WORLD.events), reverse=True)


class Killed(Exception):
    """The process was."""


def slow(runs: Runs, *, seconds: float = 6.0, killed_at: int = -1, **policy: Any) -> Provider:
    """Takes six seconds for an answer about an event, and is killed at one of these requests."""
    provider, left = Provider(**policy), killed_at

    def wait(_: object) -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1
        runs.now += seconds

    provider.wrong[r"/\d+/markets|all/event/"] = wait
    return provider


@pytest.fixture
def runs() -> Runs:
    """There are bets on all events."""
    made = Runs()
    made.bets(mention(*WORLD.events))
    return made


def texts_of_one_run(provider: Provider, **narrowing: Any) -> dict[bytes, dict[str, str]]:
    """What one run publishes that takes no time."""
    quick = Runs()
    quick.bets(mention(*WORLD.events))
    quick.run(provider, settings=ORDERLY, **narrowing)
    assert len(quick.snapshots) == 1
    return quick.topic.texts()


def asked_about(provider: Provider) -> set[int]:
    """The events whose names were asked for."""
    targets = (exchange.target for exchange in provider.rest.requests)
    return {int(target.rpartition("/")[2]) for target in targets if "/event/" in target}


def events_in(runs: Runs) -> set[int]:
    return {int(key.partition(b":")[2]) for key in runs.topic if kind_of(key) == "event"}


def test_lists_come_first_and_then_the_newest_events(runs: Runs) -> None:
    seen = list[set[int]]()

    provider = slow(runs, **BOTH)
    provider.wrong["all/event"] = lambda _: seen.append(events_in(runs)) if runs.snapshots else None
    begun = runs.now
    runs.run(provider, settings=ORDERLY)
    *portions, last = runs.snapshots
    first = portions[0]
    assert PORTION_SECONDS <= first.finished_at - begun < 60
    assert all(first.counts[kind].records for kind in LISTED)
    assert seen[0] == {*EVENTS[: len(seen[0])]}
    assert len(portions) >= 3
    for portion, later in pairwise([*portions, last]):
        assert (portion.complete, portion.left_out, portion.refreshed_at) == (False, (), None)
        assert later.finished_at - portion.finished_at >= PORTION_SECONDS or later is last
        assert portion.id != later.id
    assert (last.complete, last.refreshed_at, last.owed) == (True, begun, 0)
    assert sum(counts.written for counts in last.counts.values()) >= len(runs.topic), "those of the whole run"
    assert runs.topic.texts() == texts_of_one_run(Provider(**BOTH))
    ids = {runs.topic.codec.decode(value)["snapshotId"] for value in runs.topic.values()}
    assert ids <= {snapshot.id for snapshot in runs.snapshots}
    assert runs.run(Provider(**BOTH)).counts["event"].written == 0


@pytest.mark.parametrize("killed_at", [1, 8, 17])
def test_a_first_run_that_is_killed_goes_on_where_it_stopped(runs: Runs, killed_at: int) -> None:
    with pytest.raises(Killed):
        runs.run(slow(runs, killed_at=killed_at, **BOTH), settings=ORDERLY)
    published = events_in(runs)
    assert bool(published) is (killed_at >= 5)
    provider = slow(runs, **BOTH)
    snapshot = runs.run(provider, settings=ORDERLY)
    assert not published & asked_about(provider)
    assert (snapshot.complete, runs.full, snapshot.goes_on) == (True, True, False)
    assert snapshot.refreshed_at is not None
    assert runs.topic.texts() == texts_of_one_run(Provider(**BOTH))


@pytest.mark.parametrize("lost", ["", "names of what is owed", "records"])
def test_a_first_run_that_is_killed_begins_again_if_more_is_wanted_or_lost(runs: Runs, lost: str) -> None:
    provider = slow(runs, killed_at=17, **BOTH)
    provider.inject("all-event", status=500)
    with pytest.raises(Killed):
        runs.run(provider, settings=ORDERLY)
    published = events_in(runs)
    assert published
    assert runs.owed
    if lost == "records":
        del runs.topic[b"sport:1"]
    elif lost:
        runs.state_topic.clear()
    provider = slow(runs, **BOTH)
    assert runs.run(provider, full=not lost, settings=ORDERLY).complete
    assert published <= asked_about(provider)


def test_a_refresh_that_is_killed_begins_again_and_has_removed_nothing_by_half(runs: Runs) -> None:
    runs.run(Provider(**BOTH))
    before = runs.topic.texts()
    runs.now += 2 * DAY
    renamed = Provider(**{**BOTH, "languages": ("en", "de")})
    renamed.catalogue.rename("event", EVENTS[0], "Neu")

    def refresh(killed_at: int = -1) -> Snapshot:
        renamed.wrong = slow(runs, killed_at=killed_at).wrong
        return runs.run(renamed, settings=ORDERLY)

    with pytest.raises(Killed):
        refresh(8)
    after = runs.topic.texts()
    assert after[f"event:{EVENTS[0]}".encode()]["de"] == "Neu"
    listed = {key: texts for key, texts in after.items() if kind_of(key) in LISTED}
    assert listed == {key: before[key] for key in listed}, "another answer may still have the Swedish text"
    renamed.asked()
    assert refresh().complete
    assert renamed.asked()["all-event"] == len(EVENTS)
    league = f"league:{WORLD.events[0].league.id}".encode()
    assert ("sv" in before[league], "sv" in runs.topic.texts()[league]) == (True, False)


def test_an_ordinary_run_publishes_no_name_of_a_list_by_half() -> None:
    """It would be taken for whole, and its German text be asked for by nobody."""
    runs, first = Runs(), WORLD.events[0]
    event = next(x for x in WORLD.events if x.league != first.league)
    league = f"league:{event.league.id}".encode()
    before = Provider(**BOTH)
    before.catalogue.remove("league", event.league.id)
    runs.bets(mention(first))
    runs.run(before)
    runs.bets(mention(event))
    with pytest.raises(Killed):
        runs.run(slow(runs, seconds=40, killed_at=1, **BOTH), settings=ORDERLY)
    assert event.id in events_in(runs)
    assert league not in runs.topic
    assert runs.run(Provider(**BOTH)).complete
    assert runs.topic.texts()[league].keys() == {"en", "sv", "de"}


@pytest.mark.parametrize("reachable", [False, True])
def test_a_run_that_is_narrowed_or_without_kafka_publishes_at_its_end_only(
    runs: Runs, reachable: bool
) -> None:
    runs.reachable = reachable
    narrowing: dict[str, Any] = {"kinds": ["event"]} if reachable else {}
    runs.run(slow(runs), settings=ORDERLY, **narrowing)
    assert len(runs.snapshots) == 1
    assert runs.topic.texts() == texts_of_one_run(Provider(), **narrowing)


@pytest.mark.parametrize("keep", ["days", "bets"])
def test_names_are_kept_as_long_as_the_bets(keep: str) -> None:
    runs, settings = Runs(), api(keep_names=keep, max_shrink_share=1)
    first, second = WORLD.events[:2]
    runs.bets(mention(first))
    runs.run(Provider(), settings=settings)
    before = set(runs.topic)
    runs.now += 40 * DAY
    runs.bets(mention(second))
    provider = slow(runs, seconds=40)
    unused = next(x for x in WORLD.leagues if x not in (first.league, second.league))
    provider.catalogue.remove("league", unused.id)
    assert (runs.run(provider, settings=settings).complete, runs.full) == (True, True)
    assert not any(f":{first.id}".encode() in key for key in runs.state_topic), "the state is small"
    assert (f"event:{first.id}".encode() in runs.removed) is (keep == "days")
    if keep == "bets":
        assert (runs.removed, before <= runs.topic.keys()) == (set(), True)


def test_large_portions_go_out_at_once_and_kafka_that_is_away_is_asked_twice_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(translations, "LARGE", 1)
    looks: list[float] = []

    class Away(Runs):
        """Kafka, which is away from its third portion on."""

        def is_reachable(self) -> bool:
            looks.append(self.now)
            return len(self.snapshots) < 3

    runs = Away()
    runs.bets(mention(*WORLD.events))
    runs.run(slow(runs), settings=ORDERLY)
    first, _, third, *others = looks
    assert third - first < PORTION_SECONDS
    assert others
    assert all(later - before >= 30 for before, later in pairwise(looks[3:]))


def test_of_a_million_selections_little_is_kept_but_which_event_is_later() -> None:
    published = Published({}, Topic().codec, Translation, KINDS)
    new = [Translation("selection", number, {"en": "new"}, event_id=9) for number in (5, 6)]
    published.change("s", new, Account(Provider(), ORDERLY))
    kept = [published.values[record.key] for record in new]
    assert kept[0] is kept[1]
    found = published.get(new[0].key)
    assert found
    assert found.supersedes(Translation("selection", 5, {"en": "old"}, event_id=8))
