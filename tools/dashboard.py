"""The Grafana dashboard of `bridge run` and of the snapshot jobs, k8s/observe/dashboard.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeAlias

from grafana_foundation_sdk.builders import bargauge, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DatasourceVariable,
    QueryVariable,
    Row,
    ThresholdsConfig,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Panel,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
)

Panels: TypeAlias = Iterator[Builder[Panel]]

_SOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")
_PLACE = 'namespace=~"$namespace"'
_FEED = f'{_PLACE},feed="$feed"'
_JOBS = f'{_PLACE},snapshot!=""'
_WIDTH, _THIRD, _HALF, _QUARTER = 24, 8, 12, 6


def _query(expression: str, legend: str = "") -> Dataquery:
    query = Dataquery().expr(expression.replace("{}", f"{{{_FEED}}}").replace("{jobs}", f"{{{_PLACE}}}"))
    return query.legend_format(legend) if legend else query


def _limit(yellow: float, red: float) -> ThresholdsConfig:
    steps = [Threshold(None, "green"), Threshold(yellow, "yellow"), Threshold(red, "red")]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _number(
    title: str, expression: str, unit: str = "short", limit: tuple[float, float] | None = None
) -> stat.Panel:
    panel = stat.Panel().title(title).datasource(_SOURCE).unit(unit).span(_QUARTER).height(4)
    panel = panel.with_target(_query(expression).instant())
    return panel.thresholds(_limit(*limit)) if limit else panel


def _lines(title: str, *queries: tuple[str, str], unit: str = "short", span: int = _HALF) -> timeseries.Panel:
    panel = timeseries.Panel().title(title).datasource(_SOURCE).unit(unit).min(0).span(span).height(7)
    for expression, legend in queries:
        panel = panel.with_target(_query(expression, legend))
    return panel


def _durations(title: str, metric: str) -> timeseries.Panel:
    rates = f"sum by (le) (rate({metric}_bucket{{}}[$__rate_interval]))"
    levels = ((0.5, "p50"), (0.99, "p99"))
    return _lines(
        title, *((f"histogram_quantile({level}, {rates})", name) for level, name in levels), unit="s"
    )


def _now() -> Panels:
    states = statetimeline.Panel().title("State of each bridge").datasource(_SOURCE).span(_WIDTH).height(5)
    yield _number(
        "Position behind the provider",
        "time() - max(bridge_revision_timestamp_seconds{})",
        "s",
        (600, 21_600),
    )
    yield _number("Last commit", "time() - max(bridge_last_commit_timestamp_seconds{})", "s", (60, 300))
    yield _number("Owners", "sum(bridge_leader{})")
    yield _number("Bridges", "count(bridge_leader{})")
    yield states.with_target(_query("bridge_state{} == 1", "{{instance}} {{state}}"))


def _flow() -> Panels:
    rate = "sum by (outcome) (rate(bridge_messages_total{}[$__rate_interval]))"
    yield _lines("Messages by outcome", (rate, "{{outcome}}"), unit="cps")
    yield _durations("Duration of a commit", "bridge_commit_duration_seconds")
    yield _durations("From receipt to visible", "bridge_receipt_to_visible_seconds")
    yield _durations("From settlementTime to visible", "bridge_settlement_to_visible_seconds")
    yield _lines("Newest settlement behind the provider", ("max(bridge_feed_lag_seconds{})", "lag"), unit="s")
    yield _lines("Time left in a catch-up", ("max(bridge_catchup_eta_seconds{})", "left"), unit="s")
    yield _lines(
        "Waiting",
        ("sum(bridge_queue_messages{})", "messages read"),
        ("sum(bridge_batch_records{})", "records to commit"),
    )
    yield _lines(
        "Pace of Kafka",
        ("max(bridge_transaction_bytes{})", "most bytes of a transaction"),
        ("max(bridge_kafka_bytes_per_second{})", "a second, while it is slow"),
        unit="bytes",
    )
    yield _lines("Deduplicator", ("max(bridge_dedup_entries{})", "bets and dead letters"))


def _provider() -> Panels:
    used = bargauge.Panel().title("Limits used").datasource(_SOURCE).unit("percentunit").min(0).max(1)
    used = used.span(_THIRD).height(7).thresholds(_limit(0.5, 0.8))
    share = "max by (limit) (bridge_limit_used{} / bridge_limit_allowed{})"
    yield used.with_target(_query(share, "{{limit}}").instant())
    yield _lines(
        "Connection attempts",
        ("sum by (result) (increase(bridge_connections_total{}[$__rate_interval]))", "{{result}}"),
        span=_THIRD,
    )
    yield _lines(
        "Waits",
        (
            "clamp_min(max(bridge_next_connect_timestamp_seconds{}) - time(), 0)",
            "limits allow a reconnect",
        ),
        ("clamp_min(max(bridge_state_until_timestamp_seconds{}) - time(), 0)", "end of the wait"),
        unit="s",
        span=_THIRD,
    )
    yield _lines("Provider's clock ahead", ("max(bridge_clock_skew_seconds{})", "skew"), unit="s").min(-5)
    yield _lines(
        "What the interface does not have",
        ("max(bridge_unknown_fields{})", "unknown fields"),
        (
            "sum(rate(bridge_unknown_field_messages_total{}[$__rate_interval]))",
            "messages with one, per s",
        ),
        ("sum(rate(bridge_converter_fallbacks_total{}[$__rate_interval]))", "by pydantic, per s"),
    )


def _trouble() -> Panels:
    dead = f'sum(increase(bridge_messages_total{{{_FEED},outcome="dead_lettered"}}[1h]))'
    hidden = "max(bridge_open_transaction_seconds{})"
    lately = "clamp_max(count(bridge_last_gap_timestamp_seconds{} > time() - 3 * 86400), 1) or vector(0)"
    yield _number("Gaps in this term", "max(bridge_gaps_total{})", limit=(1, 1))
    yield _number("A gap within three days", lately, limit=(1, 1))
    yield _number("Dead letters in an hour", dead, limit=(1, 1_000))
    yield _number("Nothing converted", "max(bridge_unconverted{})", limit=(1, 1))
    yield _number("Redriven", "max(bridge_dead_letters_redriven_total{})")
    yield _number("Open transaction", hidden, "s", (10, 45))
    yield _lines(
        "Corrections, and log lines dropped",
        ("sum(rate(bridge_corrections_total{}[$__rate_interval]))", "corrections per s"),
        ("sum(rate(bridge_log_lines_dropped_total{}[$__rate_interval]))", "lines per s"),
        span=_QUARTER,
    )
    yield _lines(
        "Heartbeat of the event loop",
        ("bridge_event_loop_silent_seconds{}", "{{instance}}"),
        ("time() - bridge_event_loop_heartbeat_timestamp_seconds{}", "{{instance}}, by this clock"),
        ("time() - bridge_state_since_timestamp_seconds{}", "{{instance}}, in its state"),
        (
            "time() - bridge_transactions_looked_timestamp_seconds{}",
            "{{instance}}, last look for open transactions",
        ),
        unit="s",
        span=_QUARTER,
    )


def _names() -> Panels:
    coverage = bargauge.Panel().title("Ids with a name").datasource(_SOURCE).unit("percentunit").min(0).max(1)
    coverage = coverage.span(_HALF).height(7)
    yield _lines(
        "Age of the last snapshot",
        ("time() - max by (snapshot) (bridge_snapshot_timestamp_seconds{jobs})", "{{snapshot}}"),
        (
            "time() - max by (snapshot) (bridge_snapshot_refreshed_timestamp_seconds{jobs})",
            "{{snapshot}}, full",
        ),
        unit="s",
    )
    yield coverage.with_target(
        _query(
            "min by (kind, language) (bridge_join_coverage_ratio{jobs})", "{{kind}} {{language}}"
        ).instant()
    )
    yield _lines(
        "Records",
        ("max by (snapshot, kind) (bridge_snapshot_records{jobs})", "{{kind}}"),
        ("max by (kind) (bridge_join_ids{jobs})", "{{kind}}, ids in bets"),
    )
    yield _lines(
        "Left out",
        ("max by (snapshot) (bridge_snapshot_owed{jobs})", "{{snapshot}}, owed"),
        ("max by (endpoint) (bridge_snapshot_left_out{jobs})", "{{endpoint}}"),
        ("max by (snapshot) (1 - bridge_snapshot_complete{jobs})", "{{snapshot}}, partial"),
    )
    yield _lines(
        "Runs",
        (
            "sum by (snapshot, result) (increase(bridge_snapshot_runs_total{jobs}[1h]))",
            "{{snapshot}} {{result}}",
        ),
        ("max by (snapshot) (bridge_snapshot_seconds{jobs})", "{{snapshot}}, seconds"),
    )
    yield _lines(
        "Work in an hour",
        (
            "sum by (snapshot) (increase(bridge_snapshot_requests_total{jobs}[1h]))",
            "{{snapshot}}, requests",
        ),
        (
            "sum by (snapshot) (increase(bridge_snapshot_written_total{jobs}[1h]))",
            "{{snapshot}}, written",
        ),
        (
            "sum by (snapshot) (increase(bridge_snapshot_removed_total{jobs}[1h]))",
            "{{snapshot}}, removed",
        ),
    )


def _process() -> Panels:
    yield _lines(
        "Memory",
        ("process_resident_memory_bytes{}", "{{instance}}"),
        (f"process_resident_memory_bytes{{{_JOBS}}}", "{{instance}} {{snapshot}}"),
        unit="bytes",
    )
    yield _lines(
        "Cores",
        ("rate(process_cpu_seconds_total{}[$__rate_interval])", "{{instance}}"),
        (
            f"rate(process_cpu_seconds_total{{{_JOBS}}}[$__rate_interval])",
            "{{instance}} {{snapshot}}",
        ),
    )
    yield _lines(
        "Versions",
        ("count by (version, compiled) (bridge_info{})", "{{version}}, compiled: {{compiled}}"),
    )
    yield _lines("Open files", ("process_open_fds{}", "{{instance}}"))


ROWS = {
    "Now": _now,
    "Feed to Kafka": _flow,
    "Provider": _provider,
    "Trouble": _trouble,
    "Names and currencies": _names,
    "Processes": _process,
}
"""Title → its panels."""


def dashboard() -> str:
    """Return the dashboard as JSON."""
    # Without Kubernetes there is no such label: "All" is then the only choice, and takes what has none.
    places = QueryVariable("namespace").datasource(_SOURCE).query("label_values(bridge_info, namespace)")
    places = places.include_all(True).all_value(".*").label("Namespace")
    feeds = QueryVariable("feed").datasource(_SOURCE)
    feeds = feeds.query(f"label_values(bridge_leader{{{_PLACE}}}, feed)")
    board = (
        Dashboard("Settlement bridge")
        .uid("settlement-bridge")
        .tags(["settlement", "kafka"])
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .refresh("15s")
        .time("now-3h", "now")
        .timezone("browser")
        .with_variable(DatasourceVariable("datasource").type("prometheus").label("Prometheus"))
        .with_variable(places.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED))
        .with_variable(feeds.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).label("Feed"))
    )
    for title, panels in ROWS.items():
        board = board.with_row(Row(title))
        for panel in panels():
            board = board.with_panel(panel)
    return json.dumps(board.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
