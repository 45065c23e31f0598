"""The metrics of `bridge run`, computed from a StatusSnapshot when they are scraped.

Times are Unix timestamps, so an age keeps growing when a bridge stops reporting:
`time() - bridge_last_commit_timestamp_seconds`. A metric whose value is unknown has no sample.

Only the owner exposes the metrics of the feed (its position, the counters of its checkpoint): a standby would
report an old position, and its counters would jump when it takes over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import HistogramMetricFamily, InfoMetricFamily

from bridge import __version__
from bridge.observability.exposition import filled
from bridge.observability.status import StatusSnapshot
from bridge.records.checkpoint import State

MAX_PATHS = 50
"""Maximum number of unknown fields with a series each; the provider chooses their names."""


def collect(status: StatusSnapshot, now: float) -> Iterator[Metric]:
    """Yield the metrics at `now`, Unix seconds."""
    yield from _of_process(status, now)
    if status.owner and status.known.revision is not None:
        yield from _of_feed(status, now)


def _of_process(status: StatusSnapshot, now: float) -> Iterator[Metric]:
    known, intake, delivery = status.known, status.intake, status.delivery
    yield InfoMetricFamily(
        "bridge",
        "Version and owner id of the process; always 1.",
        {
            "version": __version__,
            "owner_id": status.process.owner_id,
            "compiled": "yes" if status.process.compiled else "no",
        },
    )
    yield Gauge(
        "bridge_event_loop_heartbeat_timestamp_seconds",
        "Time of the event loop's last heartbeat, due every second.",
        status.at,
    )
    yield Gauge(
        "bridge_event_loop_silent_seconds",
        "Time since the event loop's last heartbeat, by the clock of both.",
        max(0.0, now - status.at),
    )
    yield filled(
        Gauge("bridge_state", "1 for the current state, 0 for all others.", labels=["state"]),
        {state.value: state is status.state for state in State},
    )
    yield Counter(
        "bridge_log_lines_dropped_total",
        "Log lines dropped since the start, because nobody read stderr.",
        status.process.log_lines_dropped,
    )
    yield Gauge("bridge_state_since_timestamp_seconds", "Start of the current state.", status.since)
    yield Gauge("bridge_state_until_timestamp_seconds", "End of the current wait, if known.", status.until)
    yield Gauge("bridge_leader", "1 if this process owns the feed, else 0.", status.owner)
    yield filled(
        Gauge(
            "bridge_open_transaction_seconds",
            "For how long a transaction was seen to stay open that hides the rest of a partition.",
            labels=["topic", "partition"],
        ),
        {(place.topic, str(place.partition)): age for place, _, age in status.open_transactions or ()},
    )
    yield Gauge(
        "bridge_transactions_looked_timestamp_seconds",
        "When all topics were last looked at for open transactions.",
        status.transactions_looked_at,
    )
    yield filled(
        Counter(
            "bridge_connections_total",
            "Connection attempts since this process last became owner, by result; one that is accepted and "
            "then closed because of a limit counts as refused too.",
            labels=["result"],
        ),
        {result: intake.connections.get(result, 0) for result in ("accepted", "refused", "failed")},
    )
    yield Gauge(
        "bridge_clock_skew_seconds",
        "How far the provider's clock is ahead of this machine's.",
        known.skew,
    )
    yield Counter("bridge_gaps_total", "Gaps declared since this process last became owner.", known.gaps)
    yield Gauge(
        "bridge_last_gap_timestamp_seconds",
        "When the last gap was declared, by this process or a former owner.",
        max((gap.detected_at for gap in known.declared), default=None),
    )
    yield Gauge(
        "bridge_unknown_fields",
        "Distinct undocumented fields received since this process last became owner.",
        len(intake.extras),
    )
    yield filled(
        Counter(
            "bridge_unknown_field_messages_total",
            f"Messages with an undocumented field, by its path; only the first {MAX_PATHS} fields.",
            labels=["path"],
        ),
        dict(islice(intake.extras.items(), MAX_PATHS)),
    )
    yield Counter(
        "bridge_converter_fallbacks_total",
        "Messages that took the slower way, by pydantic, since this process last became owner.",
        intake.fallbacks,
    )
    yield Gauge(
        "bridge_queue_messages",
        "Messages read from the socket but not yet handled.",
        intake.queue_messages,
    )
    yield Gauge("bridge_batch_records", "Records not yet committed.", delivery.batch_records)
    yield Gauge(
        "bridge_transaction_bytes",
        "Most bytes of records that a transaction of a catch-up holds, by the pace of Kafka.",
        delivery.transaction_bytes,
    )
    yield Gauge(
        "bridge_kafka_bytes_per_second",
        "Rate at which records get through to Kafka while it is slow: under a quota, or on a slow link.",
        delivery.kafka_rate,
    )
    for name, help_, durations in (
        (
            "commit_duration",
            "Duration of commits since this process last became owner.",
            delivery.commit_durations,
        ),
        (
            "receipt_to_visible",
            "Time from the receipt of a transaction's first message to its commit, since this process last "
            "became owner.",
            delivery.receipt_to_visible,
        ),
        (
            "settlement_to_visible",
            "Time from a transaction's newest settlementTime to its commit, by the provider's clock, since "
            "this process last became owner.",
            delivery.settlement_to_visible,
        ),
    ):
        yield HistogramMetricFamily(
            f"bridge_{name}_seconds", help_, list(durations.buckets()), durations.seconds
        )


def _of_feed(status: StatusSnapshot, now: float) -> Iterator[Metric]:
    known, intake = status.known, status.intake
    counters = intake.counters
    yield Gauge(
        "bridge_revision_timestamp_seconds",
        "Committed position, by the provider's clock: everything published before it is in Kafka.",
        known.revision,
    )
    yield Gauge(
        "bridge_last_commit_timestamp_seconds",
        "Time of this process's last committed transaction.",
        known.committed_at,
    )
    yield filled(
        Counter(
            "bridge_messages_total",
            "Messages received since the feed's first checkpoint, by outcome.",
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
    yield Gauge(
        "bridge_unconverted",
        "1 while nothing that the provider sends can be converted, else 0.",
        bool(intake.unconverted),
    )
    yield Counter(
        "bridge_corrections_total",
        "Published messages with new content under an already published settlementVersion.",
        counters.corrections,
    )
    yield Counter(
        "bridge_dead_letters_redriven_total",
        "Dead letters that were redriven and did not fail again; each has a second outcome.",
        counters.redriven,
    )
    yield Gauge(
        "bridge_feed_lag_seconds",
        "Lag of the newest settlementTime received on this connection behind the provider's clock.",
        status.lag(now),
    )
    yield Gauge("bridge_catchup_eta_seconds", "Estimated time until the bridge has caught up.", intake.eta)
    yield filled(
        Gauge(
            "bridge_limit_used",
            "Current usage of a provider limit: attempts, or seconds of recovery in the bucket.",
            labels=["limit"],
        ),
        {limit.name: limit.used for limit in intake.usage},
    )
    yield filled(
        Gauge("bridge_limit_allowed", "Provider limit, in the unit of bridge_limit_used.", labels=["limit"]),
        {limit.name: limit.allowed for limit in intake.usage},
    )
    yield Gauge(
        "bridge_next_connect_timestamp_seconds",
        "Time from which the provider's limits and the bridge's own pause allow a reconnect.",
        intake.next_connect,
    )
    yield Gauge("bridge_dedup_entries", "Bets and dead letters in the deduplicator.", intake.dedup_entries)
