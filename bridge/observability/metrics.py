"""The metrics of `bridge run`, computed from a StatusSnapshot when they are scraped.

Times are Unix timestamps, so that an age keeps growing when a bridge stops reporting:
`time() - bridge_last_commit_timestamp_seconds`. A metric whose value is unknown has no sample.

Metrics of the feed rather than the process (its position, the counters of its checkpoint) are exposed by
the owner alone: a standby would show an old position, and a counter would jump when it takes over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)

from bridge import __version__
from bridge.observability.exposition import filled
from bridge.observability.status import StatusSnapshot
from bridge.state.checkpoint import State

MAX_PATHS = 50
"""Unknown fields with a series of their own. The provider chooses their names, so their number is bounded."""


def collect(status: StatusSnapshot, now: float) -> Iterator[Metric]:
    """Yield the metrics at `now`, Unix seconds."""
    yield from _of_process(status)
    if status.owner and status.revision is not None:
        yield from _of_feed(status, now)


def _of_process(status: StatusSnapshot) -> Iterator[Metric]:
    yield InfoMetricFamily(
        "bridge",
        "The version, the name of the process in checkpoints, and what converts messages; always 1.",
        {
            "version": __version__,
            "owner_id": status.owner_id,
            "compiled": "yes" if status.compiled else "no",
            "converter": status.converter,
        },
    )
    yield GaugeMetricFamily(
        "bridge_event_loop_heartbeat_timestamp_seconds",
        "When the event loop last ran its heartbeat, which is due every second.",
        status.at,
    )
    yield filled(
        GaugeMetricFamily("bridge_state", "1 for the current state, 0 for every other.", labels=["state"]),
        {state.value: state is status.state for state in State},
    )
    yield GaugeMetricFamily(
        "bridge_state_since_timestamp_seconds", "When the current state began.", status.since
    )
    yield GaugeMetricFamily(
        "bridge_state_until_timestamp_seconds", "When the current wait ends, if known.", status.until
    )
    yield GaugeMetricFamily("bridge_leader", "1 when this process owns the feed, else 0.", status.owner)
    yield filled(
        CounterMetricFamily(
            "bridge_connections_total",
            "Attempts to connect to the provider since this process last became owner, by result.",
            labels=["result"],
        ),
        {result: status.connections.get(result, 0) for result in ("accepted", "refused", "failed")},
    )
    yield GaugeMetricFamily(
        "bridge_clock_skew_seconds", "How far the provider's clock is ahead of ours.", status.skew
    )
    yield CounterMetricFamily(
        "bridge_gaps_total", "Gaps declared since this process last became owner.", status.gaps
    )
    yield GaugeMetricFamily(
        "bridge_unknown_fields",
        "Fields that the interface does not document, met since this process last became owner.",
        len(status.extras),
    )
    yield filled(
        CounterMetricFamily(
            "bridge_unknown_field_messages_total",
            f"Messages with such a field, by its path; of the first {MAX_PATHS} fields.",
            labels=["path"],
        ),
        dict(islice(status.extras.items(), MAX_PATHS)),
    )
    yield CounterMetricFamily(
        "bridge_converter_fallbacks_total",
        "Messages that the compiled converter left to pydantic since this process last became owner.",
        status.fallbacks,
    )
    yield GaugeMetricFamily(
        "bridge_queue_messages", "Messages read from the socket and not yet handled.", status.queue_messages
    )
    yield GaugeMetricFamily(
        "bridge_batch_records", "Records produced and not yet committed.", status.batch_records
    )
    yield HistogramMetricFamily(
        "bridge_commit_duration_seconds",
        "Duration of each commit since this process last became owner.",
        list(status.commit_durations.buckets()),
        status.commit_durations.seconds,
    )


def _of_feed(status: StatusSnapshot, now: float) -> Iterator[Metric]:
    counters = status.counters
    yield GaugeMetricFamily(
        "bridge_revision_timestamp_seconds",
        "The committed position by the provider's clock: everything published before it is in Kafka.",
        status.revision,
    )
    yield GaugeMetricFamily(
        "bridge_last_commit_timestamp_seconds",
        "When this process last committed a transaction.",
        status.committed_at,
    )
    yield filled(
        CounterMetricFamily(
            "bridge_messages_total",
            "Messages of the feed since its first checkpoint, by outcome.",
            labels=["outcome"],
        ),
        {
            "published": counters.published,
            "duplicate": counters.duplicates,
            "stale": counters.stale,
            "dead_lettered": counters.dead_lettered,
            "ping": counters.pings,
            "empty": counters.empty,
        },
    )
    yield CounterMetricFamily(
        "bridge_corrections_total",
        "Of the published: new content under the settlementVersion published before.",
        counters.corrections,
    )
    yield GaugeMetricFamily(
        "bridge_feed_lag_seconds",
        "How far the newest settlementTime read on this connection is behind the provider's clock.",
        status.lag(now),
    )
    yield GaugeMetricFamily(
        "bridge_catchup_eta_seconds", "Estimated time until the bridge has caught up.", status.eta
    )
    yield filled(
        GaugeMetricFamily(
            "bridge_limit_used",
            "Current usage of a limit of the provider: attempts, or seconds of recovery in the bucket.",
            labels=["limit"],
        ),
        {limit.name: limit.used for limit in status.usage},
    )
    yield filled(
        GaugeMetricFamily("bridge_limit_allowed", "The limit itself, in the same unit.", labels=["limit"]),
        {limit.name: limit.allowed for limit in status.usage},
    )
    yield GaugeMetricFamily(
        "bridge_next_connect_timestamp_seconds",
        "When the provider's limits allow a reconnect.",
        status.next_connect,
    )
    yield GaugeMetricFamily(
        "bridge_dedup_entries", "Bets and dead letters that the deduplicator knows.", status.dedup_entries
    )
