"""`bridge doctor`, `bridge limits` and `bridge gaps` on a real cluster."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from bridge.avro.codec import Codec
from bridge.avro.encoder import compiled
from bridge.avro.schemas import load
from bridge.doctor.aborted import check_aborted
from bridge.doctor.finding import Verdict
from bridge.feed.rate_limits import Attempt
from bridge.kafka import reader
from bridge.kafka.blocking import Clients
from bridge.ownership.election import LeaderElection, group_of, new_owner_id
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.records.gap import Cause, FeedGap
from tests.harness import Place, simulate, until
from tests.integration.snapshots import settings_at

NOWHERE = "http://127.0.0.1:1"
PLAIN = set() if compiled() else {"compiled"}
"""The check that warns where there is no compiled form."""


UNUSED = {"rest"}
"""The check that is skipped where the REST side is not set."""


async def examined(
    place: Place, base_url: str = NOWHERE, *options: str
) -> tuple[int, dict[str, dict[str, str]]]:
    """Return the exit code of `bridge doctor`, and its findings by check."""
    result = await place.ran("doctor", "--json", *options, FEED__BASE_URL=base_url)
    assert result.stdout, result.stderr
    return result.returncode, {finding["check"]: finding for finding in json.loads(result.stdout)}


def by_outcome(found: dict[str, dict[str, str]], outcome: str) -> set[str]:
    return {name for name, finding in found.items() if finding["outcome"] == outcome}


async def prepared(place: Place) -> dict[str, int]:
    """Create topics and register schemas; return the ids by topic."""
    assert (await place.ran("topics", "apply")).returncode == 0
    registered = await place.ran("schemas", "register", "--json")
    ids: dict[str, int] = json.loads(registered.stdout)
    return {name.removesuffix("-value"): schema_id for name, schema_id in ids.items()}


def write(place: Place, schema: str, topic: str, ids: dict[str, int], *data: dict[str, Any]) -> None:
    """Write records as the bridge would."""
    codec = Codec(load(schema), ids[f"{place.prefix}.{topic}"])
    for datum in data:
        place.write(topic, codec.encode(datum), datum["feed"])


async def test_before_the_first_run_nothing_is_wrong(place: Place) -> None:
    async with simulate(clock_skew_seconds=-3.0) as provider:
        code, found = await examined(place, provider.url)
        assert provider.connections == []
    assert by_outcome(found, "warn") == {"topics", "leadership"} | PLAIN
    assert by_outcome(found, "ok") == found.keys() - {"topics", "leadership"} - PLAIN - UNUSED, found
    assert code == 0
    assert f"{place.prefix}.bets: create" in found["topics"]["message"]
    assert f"{place.prefix}.bets-value: `bridge run` registers it" in found["registry"]["message"]
    assert "s behind ours" in found["provider"]["message"]
    assert f"{place.prefix}.bets" not in place.admin().list_topics(timeout=10).topics


def test_a_cluster_that_shows_what_was_aborted_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_at(place, {})
    assert check_aborted(settings).outcome is Verdict.OK
    monkeypatch.setattr(reader, "Clients", lambda s, *, committed: Clients(s, committed=not committed))
    found = check_aborted(settings)
    assert (found.outcome, f"{place.prefix}.doctor" in found.message) == (Verdict.TROUBLE, True), found
    while any(f"{place.prefix}.doctor" in name for name in place.admin().list_topics(timeout=10).topics):
        time.sleep(0.05)


def test_what_a_doctor_has_left_is_named_and_stays(place: Place) -> None:
    settings = settings_at(place, {})
    name = f"{place.prefix}.doctor.left"
    client = place.admin()
    client.create_topics([NewTopic(name, 3)])[name].result(10)
    while name not in place.admin().list_topics(timeout=10).topics:
        time.sleep(0.05)
    found = check_aborted(settings)
    assert found.outcome is Verdict.SKIPPED
    assert found.message.startswith(f"not tried: {name} is there")
    assert name in place.admin().list_topics(timeout=10).topics


def test_doctors_at_once_find_no_trouble(place: Place) -> None:
    settings = settings_at(place, {})
    with ThreadPoolExecutor(3) as several:
        found = [*several.map(lambda _: check_aborted(settings), range(9))]
    assert {it.outcome for it in found} <= {Verdict.OK, Verdict.SKIPPED}, found
    assert any(it.outcome is Verdict.OK for it in found)


async def test_a_feed_that_is_owned_is_well(place: Place) -> None:
    ids = await prepared(place)
    now = time.time()
    ledger = (Attempt(now - 60, 1_800, False, now - 59), Attempt(now - 50, 1_500, False, now - 49))
    checkpoint = Checkpoint("settlement-v4", int(now) - 30, State.LIVE, ledger, Counters(), now, "me")
    write(place, "feed-checkpoint", "checkpoints", ids, checkpoint.to_avro())
    settings = settings_at(place, {})
    leadership = LeaderElection(
        settings.kafka, group_of(settings), f"{place.prefix}.checkpoints", lambda: None, new_owner_id()
    )
    try:
        await until(lambda: leadership.is_owner, "leadership")
        code, found = await examined(place)
    finally:
        leadership.close()
    assert code == 1  # for the provider
    assert by_outcome(found, "ok") == found.keys() - {"provider"} - PLAIN - UNUSED, found
    assert f"{place.prefix}.bets" in found["rights"]["message"]
    assert f"{place.prefix}.reader" in found["rights"]["message"]
    assert "0 standbys" in found["leadership"]["message"]
    assert found["checkpoint"]["message"].startswith("Live, the position is")
    assert "proper 2 of 5" in found["checkpoint"]["message"]
    assert "cannot be reached" in found["provider"]["message"]

    shown = await place.ran("limits", "--recover", "50m", "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert (found["allowedNow"], len(found["attempts"])) == (False, 2)
    assert 2_999 < found["recoverySeconds"] <= 3_000


async def test_the_gaps_of_every_feed_are_listed(place: Place) -> None:
    ids = await prepared(place)
    none = await place.ran("gaps")
    assert (none.returncode, none.stdout) == (0, "no gap has been declared\n")
    late = FeedGap("settlement-v4", 1_790_000_000, 1_790_086_400, Cause.TOO_OLD, 1_790_345_600.5)
    early = FeedGap("other", 1_780_000_000, 1_780_000_060, Cause.MISSING_IN_REPLAY, 1_780_000_100)
    write(place, "feed-gap", "gaps", ids, late.to_avro(), early.to_avro())
    listed = await place.ran("gaps", "--json")
    first, second = json.loads(listed.stdout)
    assert (first["feed"], first["seconds"], first["cause"]) == ("other", 60, "MissingInReplay")
    assert (second["from"], second["seconds"], second["cause"]) == ("2026-09-21T14:13:20Z", 86_400, "TooOld")
