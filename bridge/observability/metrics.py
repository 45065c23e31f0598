"""Every metric, declared once with its meaning, and how it is read from a StatusSnapshot when it is scraped.

Moments are Unix timestamps, so that an age keeps growing when a bridge no longer says anything:
`time() - bridge_last_commit_timestamp_seconds`. A metric whose value is not known has no sample.

What concerns the feed rather than the process (its position, the counters of its checkpoint) is exposed
by the owner alone: a standby would show an old one, and a counter that it takes over would seem to leap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Literal, TypeVar

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from bridge import __version__
from bridge.observability.view import StatusSnapshot
from bridge.state.checkpoint import State

MOST_PATHS = 50
"""Unknown fields with a series of their own: their names are the provider's to choose."""

Samples = Iterable[tuple[tuple[str, ...], float | None]]
"""The values of the labels, and the number; None where it is not known."""


S = TypeVar("S")


@dataclass(frozen=True)
class Declared(Generic[S]):
    """A metric. Each has a label of what it is about, and those in `labels` besides."""

    name: str
    kind: Literal["counter", "gauge", "info"]
    help: str
    labels: tuple[str, ...]
    read: Callable[[S, float], Samples]
    """From what is to be shown (of the main job a StatusSnapshot) and the present moment, Unix seconds."""
    of_feed: bool = False
    """Whether only the owner knows it."""


def _one(read: Callable[[StatusSnapshot], float | None]) -> Callable[[StatusSnapshot, float], Samples]:
    return lambda view, now: [((), read(view))]


def _states(view: StatusSnapshot, now: float) -> Samples:
    return (((state.value,), state is view.state) for state in State)


def _outcomes(view: StatusSnapshot, now: float) -> Samples:
    counters = view.counters
    return [
        (("published",), counters.published),
        (("duplicate",), counters.duplicates),
        (("stale",), counters.stale),
        (("dead_lettered",), counters.dead_lettered),
        (("ping",), counters.pings),
        (("empty",), counters.empty),
    ]


def _connections(view: StatusSnapshot, now: float) -> Samples:
    return (((result,), view.connections.get(result, 0)) for result in ("accepted", "refused", "failed"))


def _paths(view: StatusSnapshot, now: float) -> Samples:
    return (((path,), count) for path, count in islice(view.extras.items(), MOST_PATHS))


METRICS: tuple[Declared[StatusSnapshot], ...] = (
    Declared(
        "bridge_info",
        "info",
        "The version, the name of the process in checkpoints, and what reads its messages; always 1.",
        ("version", "owner_id", "compiled", "converter"),
        lambda view, now: [
            ((__version__, view.owner_id, "yes" if view.compiled else "no", view.converter), 1)
        ],
    ),
    Declared(
        "bridge_event_loop_heartbeat_timestamp_seconds",
        "gauge",
        "When the event loop last gave a sign of life; it does at least every second.",
        (),
        _one(lambda view: view.at),
    ),
    Declared("bridge_state", "gauge", "1 for the present state, 0 for every other.", ("state",), _states),
    Declared(
        "bridge_state_since_timestamp_seconds",
        "gauge",
        "When the present state began.",
        (),
        _one(lambda view: view.since),
    ),
    Declared(
        "bridge_state_until_timestamp_seconds",
        "gauge",
        "When the present wait will be over, where that is known.",
        (),
        _one(lambda view: view.until),
    ),
    Declared(
        "bridge_leader",
        "gauge",
        "1 when this process owns the feed, else 0.",
        (),
        _one(lambda view: view.owner),
    ),
    Declared(
        "bridge_revision_timestamp_seconds",
        "gauge",
        "The committed position, in the provider's time: all that was published before it is in Kafka.",
        (),
        _one(lambda view: view.revision),
        of_feed=True,
    ),
    Declared(
        "bridge_last_commit_timestamp_seconds",
        "gauge",
        "When this process last committed a transaction.",
        (),
        _one(lambda view: view.committed_at),
        of_feed=True,
    ),
    Declared(
        "bridge_messages_total",
        "counter",
        "Messages of the feed since its first checkpoint, by what became of them.",
        ("outcome",),
        _outcomes,
        of_feed=True,
    ),
    Declared(
        "bridge_corrections_total",
        "counter",
        "Of the published: new content under the settlementVersion published before.",
        (),
        _one(lambda view: view.counters.corrections),
        of_feed=True,
    ),
    Declared(
        "bridge_feed_lag_seconds",
        "gauge",
        "How far the newest settlementTime read on this connection is behind the provider's clock.",
        (),
        lambda view, now: [((), view.distance(now))],
        of_feed=True,
    ),
    Declared(
        "bridge_catchup_eta_seconds",
        "gauge",
        "Estimate of the time until what was published is caught up with.",
        (),
        _one(lambda view: view.eta),
        of_feed=True,
    ),
    Declared(
        "bridge_limit_used",
        "gauge",
        "What counts against a limit of the provider now: attempts, or seconds of recovery in the bucket.",
        ("limit",),
        lambda view, now: (((room.name,), room.used) for room in view.usage),
        of_feed=True,
    ),
    Declared(
        "bridge_limit_allowed",
        "gauge",
        "What that limit allows, in the same unit.",
        ("limit",),
        lambda view, now: (((room.name,), room.allowed) for room in view.usage),
        of_feed=True,
    ),
    Declared(
        "bridge_next_connect_timestamp_seconds",
        "gauge",
        "When the provider's limits would let a reconnect in.",
        (),
        _one(lambda view: view.next_connect),
        of_feed=True,
    ),
    Declared(
        "bridge_dedup_entries",
        "gauge",
        "Bets and dead letters that the guard knows.",
        (),
        _one(lambda view: view.dedup_entries),
        of_feed=True,
    ),
    Declared(
        "bridge_connections_total",
        "counter",
        "Attempts to connect to the provider since this process last won the feed, by result.",
        ("result",),
        _connections,
    ),
    Declared(
        "bridge_clock_skew_seconds",
        "gauge",
        "How far the provider's clock is ahead of ours.",
        (),
        _one(lambda view: view.skew),
    ),
    Declared(
        "bridge_gaps_total",
        "counter",
        "Gaps declared since this process last won the feed.",
        (),
        _one(lambda view: view.gaps),
    ),
    Declared(
        "bridge_unknown_fields",
        "gauge",
        "Fields that the interface does not know, as met since this process last won the feed.",
        (),
        _one(lambda view: len(view.extras)),
    ),
    Declared(
        "bridge_unknown_field_messages_total",
        "counter",
        f"Messages with such a field, by its path; of the first {MOST_PATHS} fields.",
        ("path",),
        _paths,
    ),
    Declared(
        "bridge_converter_fallbacks_total",
        "counter",
        "Messages that the compiled converter has left to pydantic since this process last won the feed.",
        (),
        _one(lambda view: view.fallbacks),
    ),
    Declared(
        "bridge_queue_messages",
        "gauge",
        "Messages read from the socket and not yet handled.",
        (),
        _one(lambda view: view.queue_messages),
    ),
    Declared(
        "bridge_batch_records",
        "gauge",
        "Records made and not yet committed.",
        (),
        _one(lambda view: view.batch_records),
    ),
    Declared(
        "bridge_transactions_total",
        "counter",
        "Transactions committed since this process last won the feed.",
        (),
        _one(lambda view: view.transactions),
    ),
    Declared(
        "bridge_commit_seconds_total",
        "counter",
        "Time spent on these.",
        (),
        _one(lambda view: view.commit_seconds),
    ),
)


def exposition(view: StatusSnapshot, now: float, accept: str = "") -> tuple[bytes, str]:
    """All metrics of a view and of the process, as text, and the type of that text.

    `now` is in Unix seconds; `accept` is the scraper's header of that name, which may ask for
    OpenMetrics.
    """
    owning = view.owner and view.revision is not None
    shown = [declared for declared in METRICS if owning or not declared.of_feed]
    return exposed(shown, view, {"feed": view.feed}, now, accept)


def exposed(
    shown: Sequence[Declared[S]],
    source: S,
    about: Mapping[str, str],
    now: float,
    accept: str = "",
    *,
    process: bool = True,
) -> tuple[bytes, str]:
    """The metrics `shown`, read from `source`, each with the labels `about`; and those of the process."""
    registry = CollectorRegistry()
    registry.register(_Collected([_metric(declared, source, about, now) for declared in shown]))
    if process:
        ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Collected(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        return iter(self._metrics)


def _metric(declared: Declared[S], source: S, about: Mapping[str, str], now: float) -> Metric:
    suffix = {"counter": "_total", "info": "_info", "gauge": ""}[declared.kind]
    metric = Metric(declared.name.removesuffix(suffix), declared.help, declared.kind)
    for values, number in declared.read(source, now):
        if number is not None:
            labels = dict(zip(declared.labels, values, strict=True))
            metric.add_sample(declared.name, {**about, **labels}, float(number))
    return metric
