"""What a scraper sees of a view, parsed by Prometheus' own parsers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from bridge import __version__
from bridge.feed.rate_limits import LimitUsage
from bridge.observability.metrics import METRICS, MOST_PATHS, Declared, exposition
from bridge.observability.view import StatusSnapshot
from bridge.snapshots.metrics import METRICS as SNAPSHOT_METRICS
from bridge.state.checkpoint import Counters, State

NOW = 1_790_000_000.0
STARTED = StatusSnapshot(at=NOW, started_at=NOW - 5, feed="f", owner_id="host:1:abc", since=NOW - 5)
OWNER = replace(
    STARTED,
    state=State.CATCHING_UP,
    until=NOW + 7,
    owner=True,
    revision=1_789_999_000,
    committed_at=NOW - 3,
    counters=Counters(
        received=28, published=6, duplicates=5, stale=4, corrections=1, dead_lettered=3, pings=7, empty=3
    ),
    dedup_entries=11,
    skew=-2.5,
    gaps=1,
    connections={"accepted": 2, "refused": 1},
    newest=NOW - 500,
    rate=100.0,
    eta=60.0,
    usage=(LimitUsage("initial", 2, 5, None), LimitUsage("bucket", 900.5, 3600, NOW + 225)),
    next_connect=NOW + 30,
    extras={"data.new": 3, 'data."odd\\\n': 1},
    compiled=True,
    converter="compiled",
    fallbacks=4,
    queue_messages=8,
    batch_records=9,
    transactions=10,
    commit_seconds=1.25,
)
Scraped = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(view: StatusSnapshot, now: float = NOW) -> Scraped:
    """Every sample by its name and labels, without the label `feed`."""
    body, _ = exposition(view, now)
    found: Scraped = {}
    for family in parse_text(body.decode()):
        for sample in family.samples:
            labels = dict(sample.labels)
            if sample.name.startswith("bridge_"):
                assert labels.pop("feed") == view.feed
            key = sample.name, frozenset(labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return f"bridge_{name}", frozenset(labels.items())


EXPECTED: Scraped = {
    key("info", version=__version__, owner_id="host:1:abc", compiled="yes", converter="compiled"): 1,
    key("event_loop_heartbeat_timestamp_seconds"): NOW,
    **{key("state", state=state.value): state is State.CATCHING_UP for state in State},
    key("state_since_timestamp_seconds"): NOW - 5,
    key("state_until_timestamp_seconds"): NOW + 7,
    key("leader"): 1,
    key("revision_timestamp_seconds"): 1_789_999_000,
    key("last_commit_timestamp_seconds"): NOW - 3,
    key("messages_total", outcome="published"): 6,
    key("messages_total", outcome="duplicate"): 5,
    key("messages_total", outcome="stale"): 4,
    key("messages_total", outcome="dead_lettered"): 3,
    key("messages_total", outcome="ping"): 7,
    key("messages_total", outcome="empty"): 3,
    key("corrections_total"): 1,
    key("feed_lag_seconds"): 507.5,
    key("catchup_eta_seconds"): 60,
    key("limit_used", limit="initial"): 2,
    key("limit_used", limit="bucket"): 900.5,
    key("limit_allowed", limit="initial"): 5,
    key("limit_allowed", limit="bucket"): 3600,
    key("next_connect_timestamp_seconds"): NOW + 30,
    key("dedup_entries"): 11,
    key("connections_total", result="accepted"): 2,
    key("connections_total", result="refused"): 1,
    key("connections_total", result="failed"): 0,
    key("clock_skew_seconds"): -2.5,
    key("gaps_total"): 1,
    key("unknown_fields"): 2,
    key("unknown_field_messages_total", path="data.new"): 3,
    key("unknown_field_messages_total", path='data."odd\\\n'): 1,
    key("converter_fallbacks_total"): 4,
    key("queue_messages"): 8,
    key("batch_records"): 9,
    key("transactions_total"): 10,
    key("commit_seconds_total"): 1.25,
}


def test_the_owner_exposes_everything() -> None:
    """Ten seconds later the distance has grown by ten; all else is as the view has it."""
    found = scrape(OWNER, NOW + 10)
    assert {name: value for name, value in found.items() if name[0].startswith("bridge_")} == EXPECTED


def test_every_message_has_an_outcome() -> None:
    """The outcomes sum up to what was received."""
    assert OWNER.counters.balanced
    total = sum(value for (name, _), value in EXPECTED.items() if name == "bridge_messages_total")
    assert total == OWNER.counters.received


def test_what_is_not_known_has_no_sample() -> None:
    """Zero would be a lie."""
    names = {name for name, _ in scrape(STARTED)}
    unknown = {"bridge_state_until_timestamp_seconds", "bridge_clock_skew_seconds"}
    assert unknown.isdisjoint(names)
    assert sum(value for (name, _), value in scrape(STARTED).items() if name == "bridge_state") == 0


@pytest.mark.parametrize("view", [replace(OWNER, owner=False), replace(OWNER, revision=None)])
def test_only_who_knows_the_feed_speaks_of_it(view: StatusSnapshot) -> None:
    """A standby would tell an old position, and a counter it takes over would seem to leap."""
    names = {name for name, _ in scrape(view)}
    of_feed = {metric.name for metric in METRICS if metric.of_feed}
    assert len(of_feed) >= 10
    assert names.isdisjoint(of_feed)
    assert names >= {"bridge_leader", "bridge_connections_total", "bridge_gaps_total"}


def test_the_provider_cannot_make_ever_more_series() -> None:
    """Only the first of the fields that it invents are named; how many there are is told."""
    found = scrape(replace(OWNER, extras={f"data.{n}": n for n in range(1_000)}))
    named = [labels for name, labels in found if name == "bridge_unknown_field_messages_total"]
    assert len(named) == MOST_PATHS
    assert found[key("unknown_field_messages_total", path=f"data.{MOST_PATHS - 1}")] == MOST_PATHS - 1
    assert found[key("unknown_fields")] == 1_000


def test_openmetrics_is_valid() -> None:
    """Its own parser, which is strict, reads the same samples."""
    body, content_type = exposition(OWNER, NOW, "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    families = openmetrics.text_string_to_metric_families(body.decode())  # type: ignore[no-untyped-call]
    samples = [sample for family in families for sample in family.samples]
    ours = [sample for sample in samples if sample.name.startswith("bridge_")]
    assert len(ours) == len(EXPECTED)


def test_the_process_is_there_too() -> None:
    """Its memory, its processor time and when it started."""
    names = {name for name, _ in scrape(STARTED)}
    assert names >= {
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
    }


@pytest.mark.parametrize("metric", [*METRICS, *SNAPSHOT_METRICS], ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Declared[Any]) -> None:
    """Prefix, base units, `_total` for counters alone, help that is a sentence."""
    assert re.fullmatch(r"bridge(_[a-z]+)+", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    assert "age" not in metric.name.split("_")
    assert metric.help.endswith(".")
    assert "feed" not in metric.labels


def test_no_metric_is_declared_twice() -> None:
    """By name."""
    names = [metric.name for metric in METRICS] + [metric.name for metric in SNAPSHOT_METRICS]
    assert len(names) == len(set(names))
