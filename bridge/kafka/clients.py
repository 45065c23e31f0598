"""Creates librdkafka clients. Only the sandbox sets librdkafka's properties elsewhere."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, ThrottleEvent, TopicPartition
from confluent_kafka.admin import AdminClient

from bridge.config import KafkaSettings, env_name
from bridge.config.files import hazard
from bridge.config.kafka import HEARTBEAT_MS, SESSION_MS
from bridge.config.secrets import digest
from bridge.errors import SettingsError
from bridge.kafka import msk
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import Admin, Outage, lacks_trust, outage_of
from bridge.kafka.pace import KafkaPace
from bridge.kafka.patience import patience

T = TypeVar("T")

LOG = logging.getLogger("librdkafka")
STATISTICS_MS = 5_000
TRANSACTION_MS = 30_000
"""Of `bridge run`. Short, because a transaction left open by a dead owner hides later records."""
ASSIGNOR = "cooperative-sticky"
WARM_UP_SECONDS = 2.0
_PROBE = "probe"
"""Instead of a path: librdkafka looks for the authorities of the system."""
REFUSED_SECONDS = 60.0
"""How long an error counts: a client repeats the same one after 30 s."""
TRANSACTIONS = "__transaction_state"
"""Kafka's topic of transactions, which every broker has or is about to make."""
_COMMON = {"client.id": "settlement-bridge", "reconnect.backoff.max.ms": 2_000}
_BY_HAND = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
}
"""For every consumer: offsets are committed in transactions, if at all."""

_CREATES_NOTHING = {"allow.auto.create.topics": False}
"""A deleted topic would be made anew, with the brokers' defaults. Consumers never ask for that."""


class Signs:
    """What a client reports of itself, and whether it has to be replaced for that.

    One that has lost all its brokers, by its statistics, never asks again (decision 0009). And librdkafka
    reads passwords, keys and certificates once, and goes on with them for ever, also where brokers refuse the
    client because they have been replaced.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._used = _digest(settings)
        self._refused_at = -inf
        self._without = 0
        """Statistics in a row without a broker to ask: one, where the client just starts over."""

    @property
    def stranded(self) -> str:
        """Return why the client is of no use any more, "" if it is.

        Reads the files of secrets, if a broker has refused it just now.
        """
        if self._without > 1:
            return "it has lost all its brokers"
        refused = time.monotonic() <= self._refused_at + REFUSED_SECONDS
        if refused and _digest(self._settings) not in (self._used, None):
            return "brokers refuse it, and its secrets have changed"
        return ""

    def on_statistics(self, statistics: str) -> None:
        """Take the client's statistics, in librdkafka's JSON."""
        sources = {broker["source"] for broker in orjson.loads(statistics)["brokers"].values()}
        self._without = 0 if sources & {"configured", "learned"} else self._without + 1

    def on_error(self, error: KafkaError) -> None:
        """Take an error of the client."""
        if lacks_trust(error):
            self._refused_at = time.monotonic()
        outage_of(self._settings).on_error(error)


def _digest(settings: KafkaSettings) -> bytes | None:
    """Return a digest of all properties, secrets included, and of their files; None while one is missing."""
    try:
        properties = settings.properties()
    except SettingsError:
        return None
    return digest(repr(sorted(properties.items())), _files(properties))


def _files(properties: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the files and directories that librdkafka's properties name."""
    for name, value in properties.items():
        if name.endswith((".location", ".file")) and value not in ("", _PROBE):
            yield Path(str(value))


class WatchedConsumer(Consumer):
    """A consumer that knows, from being polled, whether its client has to be replaced."""

    def __init__(self, properties: dict[str, Any], *, signs: Signs, **options: Any) -> None:
        self._signs = signs  # a callback of this object would keep it alive
        statistics = {"statistics.interval.ms": STATISTICS_MS, "stats_cb": signs.on_statistics}
        super().__init__({**properties, **statistics, "error_cb": signs.on_error}, **options)

    @property
    def stranded(self) -> str:
        """As `Signs.stranded`: it reads nothing then, and may report no error."""
        return self._signs.stranded


def producer(
    settings: KafkaSettings,
    *,
    transactional_id: str,
    max_record_bytes: int,
    transaction_ms: int = TRANSACTION_MS,
    queue_kbytes: int = 131_072,
    pace: KafkaPace | None = None,
) -> Producer:
    """Create an idempotent transactional producer that partitions as Java does.

    The broker aborts a transaction after `transaction_ms`; the client buffers at most `queue_kbytes`. The
    `pace` learns for how long a broker answers nothing because of a quota.
    """

    def on_throttle(event: ThrottleEvent) -> None:
        if pace is not None:
            pace.on_throttle(event.broker_id, event.throttle_time, time.monotonic())

    return _create(
        Producer,
        settings,
        defaults={
            "transaction.timeout.ms": transaction_ms,
            # A burst is still batched: it waits while five requests are in flight.
            "linger.ms": 0,
            # The pause before a transaction begins while the last one has not ended; default 100.
            "retry.backoff.ms": 5,
            "queue.buffering.max.kbytes": max(queue_kbytes, 2 * max_record_bytes // 1024),
        },
        ours={
            **_CREATES_NOTHING,
            "transactional.id": transactional_id,
            "enable.idempotence": True,
            "acks": "all",
            "message.max.bytes": max_record_bytes,
            "partitioner": "murmur2_random",
            "throttle_cb": on_throttle,
        },
    )


def reader(
    settings: KafkaSettings, *, name: str, prompt: bool = False, committed: bool = True
) -> WatchedConsumer:
    """Create a `read_committed` consumer for partitions assigned by hand; `read_uncommitted` on request.

    librdkafka requires a group id, and Kafka the right to describe that group; no consumer joins it.

    The consumer reports the end of each partition, transaction markers included. With `prompt` it does so
    at once, at the price of 50 requests a second while there is nothing to read.
    """
    return _consumer(
        settings,
        defaults={
            **({"fetch.wait.max.ms": 20} if prompt else {}),
            # Bounds the memory for records read ahead.
            "fetch.message.max.bytes": 1024 * 1024,
            "queued.max.messages.kbytes": 4 * 1024,
            # The pause before fetching again when that queue is full; default 1000.
            "fetch.queue.backoff.ms": 10,
        },
        ours={
            **({} if committed else {"isolation.level": "read_uncommitted"}),
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "group.id": name,
        },
    )


def member(
    settings: KafkaSettings,
    *,
    group: str,
    committed: Callable[[KafkaError | None, list[TopicPartition]], None],
    name: str | None = None,
) -> WatchedConsumer:
    """Create a dynamic member of an owner group. It is sticky: a newcomer takes nothing away.

    `poll` calls `committed` with the outcome of each asynchronous commit. `name` becomes the client.id.
    """
    return _consumer(
        settings,
        defaults={
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "auto.offset.reset": "latest",
        },
        ours={
            **({"client.id": name} if name else {}),
            "group.id": group,
            "on_commit": committed,
            "partition.assignment.strategy": ASSIGNOR,
        },
    )


def warm_up(client: Consumer | Producer, topic: str = TRANSACTIONS) -> None:
    """Have a new client find the brokers, and the leaders of a topic. Leaves errors to the calls that follow.

    librdkafka drops its first connection when it has learnt the brokers, and with it what was asked there; so
    the call that needed the answer waits (decision 0009). The second answer comes over one that stays. A
    producer's question could create one of our topics, so it asks for another.
    """
    with suppress(KafkaException):
        for _ in range(2):
            client.list_topics(topic, timeout=WARM_UP_SECONDS * patience.factor)


def session_seconds(settings: KafkaSettings) -> float:
    """Return how long a dead member of an owner group keeps its assignment."""
    return float(settings.public_properties().get("session.timeout.ms", SESSION_MS)) / 1000


def admin(settings: KafkaSettings) -> AdminClient:
    """Create an administration client."""
    return _create(Admin, settings, ours=_CREATES_NOTHING, options={"outage": outage_of(settings)})


def _consumer(
    settings: KafkaSettings, *, defaults: Mapping[str, Any], ours: Mapping[str, Any]
) -> WatchedConsumer:
    return _create(
        WatchedConsumer,
        settings,
        defaults=defaults,
        ours={**_BY_HAND, **ours},
        options={"signs": Signs(settings)},  # the secrets as they are before they are read
    )


def _create(
    kind: Callable[..., T],
    settings: KafkaSettings,
    *,
    defaults: Mapping[str, Any] | None = None,
    ours: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> T:
    """Create a client with the settings, over `defaults` and under `ours`; `options` are not librdkafka's.

    All clients share the settings: librdkafka ignores those of the other kind of client.
    Raises SettingsError when librdkafka refuses the settings, KafkaUnavailable when it once accepted them;
    both as `msk.token`, with which it takes a second.
    """
    properties = {**_COMMON, **(defaults or {}), **settings.properties(), **(ours or {})}
    outage = outage_of(settings)
    outage.properties = settings.public_properties()
    made_of = (kind, frozenset(properties), settings)
    try:
        for file in _files(properties):
            if reason := hazard(file):  # librdkafka would hold the interpreter, too
                raise ValueError(f"{file}: {reason}")
        hearing: dict[str, Any] = {"throttle_cb": outage.on_throttle, "error_cb": outage.on_error}
        if region := settings.sasl_oauthbearer_msk_region:
            hearing["oauth_cb"] = sign = partial(_token, outage, region)
            sign("")  # without a token, the client would take 10 s to say so, and not say why
        client = kind({**hearing, **properties}, logger=LOG, **(options or {}))
    except (KafkaException, TypeError, ValueError) as error:
        detail = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        if made_of in _accepted:  # a file they name is missing, or descriptors have run out
            raise KafkaUnavailable(f"no client can be made: {detail}") from None
        raise SettingsError(_explain(detail)) from None
    _accepted.add(made_of)
    return client


def _token(outage: Outage, region: str, _: str) -> tuple[str, float]:
    """Return a token for a client of the cluster, which does not say itself why it gets none."""
    try:
        made = msk.token(region)
    except KafkaUnavailable as error:
        outage.no_token = str(error)
        raise
    outage.no_token = ""
    return made


def _explain(detail: str) -> str:
    """Return why librdkafka refuses the settings together, and which one."""
    named = re.search(r'property:? "([\w.]+)"', detail)
    if lacking := re.search(r"(?:No provider for|Unsupported) (SASL mechanism:? [\w-]+)", detail):
        return (
            f"kafka.sasl_mechanism ({env_name('kafka', 'sasl_mechanism')}): this librdkafka has no "
            f"{lacking[1]} (its default is GSSAPI): give PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
        )
    if named is None:
        return f"kafka: librdkafka does not accept the settings: {detail}"
    key = named[1].replace(".", "_")
    return f"kafka.{key} ({env_name('kafka', key)}): librdkafka does not accept it: {detail}"


_accepted: set[tuple[Callable[..., object], frozenset[str], KafkaSettings]] = set()
"""Kind, property names and settings of every client created so far."""
