"""What a scraper gets from `bridge run`, parsed by Prometheus' own parsers."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from bridge import __version__
from bridge.feed.rate_limits import LimitUsage
from bridge.kafka.open_transactions import OpenTransaction, RecordPlace
from bridge.observability.exposition import exposition
from bridge.observability.metrics import MAX_PATHS, collect
from bridge.observability.status import BOUNDS, LAG_BOUNDS, DurationHistogram, StatusSnapshot
from bridge.records.checkpoint import State
from bridge.records.gap import Cause, FeedGap
from tests.snapshots import replace
from tests.unit.observability.test_status import NOW, STARTED
from tests.unit.records.test_checkpoint import CHECKPOINT

OWNER = replace(
    STARTED,
    state=State.CATCHING_UP,
    until=NOW + 7,
    owner=True,
    revision=1_789_999_000,
    committed_at=NOW - 3,
    counters=CHECKPOINT.counters,
    dedup_entries=11,
    skew=-2.5,
    gaps=1,
    declared=(
        FeedGap("f", NOW - 900, NOW - 800, Cause.TOO_OLD, NOW - 700),
        FeedGap("f", NOW - 600, NOW - 500, Cause.TOO_OLD, NOW - 400),
    ),
    connections={"accepted": 2, "refused": 1},
    newest=NOW - 500,
    eta=60.0,
    usage=(LimitUsage("initial", 2, 5, None), LimitUsage("bucket", 900.5, 3600, NOW + 225)),
    next_connect=NOW + 30,
    extras={"data.new": 3, 'data."odd\\\n': 1},
    compiled=True,
    fallbacks=4,
    log_lines_dropped=13,
    open_transactions=(OpenTransaction(RecordPlace("t.bets", 3, 7), NOW - 300, 50),),
    transactions_looked_at=NOW - 2,
    queue_messages=8,
    batch_records=9,
    transaction_bytes=131_072,
    kafka_rate=68_000.5,
    commit_durations=DurationHistogram([0, 0, 6, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1], 40.25),
    settlement_to_visible=DurationHistogram([0] * 9 + [1] + [0] * 4, 3600, LAG_BOUNDS),
)
OUTCOMES = {"published": 6, "duplicate": 5, "stale": 4, "dead_lettered": 3, "ping": 7, "empty": 3}
"""Of messages."""
Scraped = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(status: StatusSnapshot, now: float = NOW) -> Scraped:
    """Return every sample by name and labels, without the label `feed`."""
    body, _ = exposition(collect(status, now), {"feed": status.process.feed})
    found: Scraped = {}
    for family in parse_text(body.decode()):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("feed") == status.process.feed
            key = sample.name, frozenset(labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return f"bridge_{name}", frozenset(labels.items())


EXPECTED: Scraped = {
    key("info", version=__version__, owner_id="host:1:abc", compiled="yes"): 1,
    key("event_loop_heartbeat_timestamp_seconds"): NOW,
    **{key("state", state=state.value): state is State.CATCHING_UP for state in State},
    key("log_lines_dropped_total"): 13,
    key("state_since_timestamp_seconds"): NOW - 5,
    key("state_until_timestamp_seconds"): NOW + 7,
    key("leader"): 1,
    key("open_transaction_seconds", topic="t.bets", partition="3"): 50,
    key("transactions_looked_timestamp_seconds"): NOW - 2,
    key("revision_timestamp_seconds"): 1_789_999_000,
    key("last_commit_timestamp_seconds"): NOW - 3,
    **{key("messages_total", outcome=outcome): count for outcome, count in OUTCOMES.items()},
    key("dead_letters_redriven_total"): 2,
    key("unconverted"): 0,
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
    key("last_gap_timestamp_seconds"): NOW - 400,
    key("event_loop_silent_seconds"): 10.0,
    key("unknown_fields"): 2,
    key("unknown_field_messages_total", path="data.new"): 3,
    key("unknown_field_messages_total", path='data."odd\\\n'): 1,
    key("converter_fallbacks_total"): 4,
    key("queue_messages"): 8,
    key("batch_records"): 9,
    key("transaction_bytes"): 131_072,
    key("kafka_bytes_per_second"): 68_000.5,
    **{key("commit_duration_seconds_bucket", le=le): 0 for le in ("0.005", "0.01")},
    **{key("commit_duration_seconds_bucket", le=le): 6 for le in ("0.02", "0.05")},
    **{
        key("commit_duration_seconds_bucket", le=le): 9
        for le in ("0.1", "0.2", "0.5", "1.0", "2.0", "5.0", "10.0", "30.0")
    },
    key("commit_duration_seconds_bucket", le="+Inf"): 10,
    key("commit_duration_seconds_count"): 10,
    key("commit_duration_seconds_sum"): 40.25,
    **{key("receipt_to_visible_seconds_bucket", le=str(le)): 0 for le in (*BOUNDS, "+Inf")},
    key("receipt_to_visible_seconds_count"): 0,
    key("receipt_to_visible_seconds_sum"): 0,
    **{key("settlement_to_visible_seconds_bucket", le=str(le)): 0 for le in LAG_BOUNDS[:9]},
    **{key("settlement_to_visible_seconds_bucket", le=str(le)): 1 for le in (*LAG_BOUNDS[9:], "+Inf")},
    key("settlement_to_visible_seconds_count"): 1,
    key("settlement_to_visible_seconds_sum"): 3600,
}


def test_the_owner_exposes_everything() -> None:
    found = scrape(OWNER, NOW + 10)
    assert {name: value for name, value in found.items() if name[0].startswith("bridge_")} == EXPECTED


def test_every_message_has_an_outcome() -> None:
    assert OWNER.intake.counters.balanced
    assert sum(OUTCOMES.values()) == OWNER.intake.counters.received + OWNER.intake.counters.redriven


def test_an_unknown_value_has_no_sample() -> None:
    names = {name for name, _ in scrape(STARTED)}
    unknown = {"bridge_state_until_timestamp_seconds", "bridge_clock_skew_seconds"}
    unknown |= {"bridge_open_transaction_seconds", "bridge_transactions_looked_timestamp_seconds"}
    assert unknown.isdisjoint(names)
    assert sum(value for (name, _), value in scrape(STARTED).items() if name == "bridge_state") == 0


@pytest.mark.parametrize("status", [replace(OWNER, owner=False), replace(OWNER, revision=None)])
def test_only_the_owner_exposes_metrics_of_the_feed(status: StatusSnapshot) -> None:
    missing = {name for name, _ in EXPECTED} - {name for name, _ in scrape(status)}
    assert missing == {
        "bridge_revision_timestamp_seconds",
        "bridge_last_commit_timestamp_seconds",
        "bridge_messages_total",
        "bridge_unconverted",
        "bridge_corrections_total",
        "bridge_dead_letters_redriven_total",
        "bridge_feed_lag_seconds",
        "bridge_catchup_eta_seconds",
        "bridge_limit_used",
        "bridge_limit_allowed",
        "bridge_next_connect_timestamp_seconds",
        "bridge_dedup_entries",
    }


def test_the_provider_cannot_make_ever_more_series() -> None:
    found = scrape(replace(OWNER, extras={f"data.{n}": n for n in range(1_000)}))
    named = [labels for name, labels in found if name == "bridge_unknown_field_messages_total"]
    assert len(named) == MAX_PATHS
    assert found[key("unknown_field_messages_total", path=f"data.{MAX_PATHS - 1}")] == MAX_PATHS - 1
    assert found[key("unknown_fields")] == 1_000


def test_openmetrics_is_valid() -> None:
    accept = "application/openmetrics-text; version=1.0.0"
    body, content_type = exposition(collect(OWNER, NOW), {"feed": "f"}, accept)
    assert content_type.startswith("application/openmetrics-text")
    families = openmetrics.text_string_to_metric_families(body.decode())  # type: ignore[no-untyped-call]
    samples = [sample for family in families for sample in family.samples]
    ours = [sample for sample in samples if sample.name.startswith("bridge_")]
    assert len(ours) == len(EXPECTED)


def test_the_process_is_exposed_too() -> None:
    names = {name for name, _ in scrape(STARTED)}
    assert names >= {
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
    }
