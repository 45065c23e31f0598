"""Runs the checks of `bridge doctor`.

A check is skipped if a setting that it needs is missing or a check that it depends on has not succeeded. A
check that hangs is given up after a time limit. What `bridge run` waits for is trouble, what ends it is a
failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from bridge import clock
from bridge.avro.encoder import compiled
from bridge.clock import AnchoredClock
from bridge.config import Settings
from bridge.doctor import (
    aborted,
    bounds,
    certificates,
    feed_checks,
    kafka_checks,
    local_checks,
    network_checks,
)
from bridge.doctor.encryption import check_encryption
from bridge.doctor.finding import Finding, Verdict
from bridge.errors import BridgeError, FeedError, SettingsError
from bridge.feed.provider_clock import ask
from bridge.formatting import format_duration
from bridge.kafka.blocking import in_background
from bridge.kafka.errors import KafkaUnavailable
from bridge.registry import RegistryUnavailable

CHECK_SECONDS = 30.0
"""Time limit of a check; its requests have shorter limits of their own."""
AWAITED = (KafkaUnavailable, RegistryUnavailable, FeedError)
"""Errors after which `bridge run` tries again."""


class Check(NamedTuple):
    """A check. `run` may raise BridgeError, which explains itself, instead of returning a failure."""

    name: str
    run: Callable[[Settings], Finding]
    needs: tuple[str, ...] = ()
    """Settings, such as `feed.base_url`, and checks that it depends on."""
    writes: bool = False
    """Whether it changes anything."""


def _provider(settings: Settings) -> Finding:
    try:
        skew = asyncio.run(ask(settings.feed))
    except AWAITED as error:
        return Finding(Verdict.TROUBLE, str(error), "Check feed.base_url, feed.proxy and feed.ca_file.")
    return feed_checks.assess_clock(settings.feed, skew and skew.by(AnchoredClock().offset))


_KAFKA = ("kafka.bootstrap_servers", "kafka")
_ADDRESSES = ("kafka.bootstrap_servers", "registry.url")
_STORED = (*_ADDRESSES, "kafka", "registry")
CHECKS = (
    Check("settings", local_checks.check_settings),
    Check("encryption", check_encryption),
    Check(
        "compiled",
        lambda _: local_checks.assess_form(compiled(), local_checks.outdated(local_checks.PACKAGE)),
    ),
    Check("tokens", lambda s: local_checks.check_tokens(s, clock.now().wall)),
    Check("certificates", lambda s: certificates.check_certificates(s, clock.now().wall)),
    Check("kafka", kafka_checks.check_brokers, ("kafka.bootstrap_servers",)),
    Check("topics", kafka_checks.check_topics, _KAFKA),
    Check("replicas", kafka_checks.check_replicas, _KAFKA),
    Check("transactions", kafka_checks.check_transactions, _KAFKA),
    Check("rights", kafka_checks.check_rights, _KAFKA),
    Check("registry", kafka_checks.check_registry, ("registry.url",)),
    Check("bounds", bounds.check_bounds, _KAFKA),
    Check("aborted", aborted.check_aborted, _KAFKA, writes=True),
    Check("leadership", kafka_checks.check_leadership, _KAFKA),
    Check("feeds", feed_checks.check_feeds, _STORED),
    Check("checkpoint", lambda s: feed_checks.check_checkpoint(s, clock.now().wall), _STORED),
    Check("published", kafka_checks.check_published, (*_ADDRESSES, "topics", "registry")),
    Check("provider", _provider, ("feed.base_url",)),
    Check("rest", network_checks.check_rest, ("api.base_url",)),
)


def run_checks(
    load: Callable[[], Settings], checks: tuple[Check, ...] = CHECKS, patience: float = CHECK_SECONDS
) -> Iterator[tuple[str, Finding]]:
    """Yield the name and the finding of each check as soon as it has ended.

    `load` reads the settings and may raise SettingsError. `patience` is the time limit of each check in
    seconds.
    """
    try:
        settings = load()
    except SettingsError as error:
        yield (
            "settings",
            Finding(Verdict.FAIL, str(error), "Nothing else is checked without them.").concealed(),
        )
        return
    unmet: set[str] = set()
    for check in checks:
        unset = {name for name in check.needs if "." in name and not attrgetter(name)(settings)}
        missing = [name for name in check.needs if name in unset | unmet]
        if missing:
            finding = Finding(Verdict.SKIPPED, f"needs {' and '.join(missing)}")
        else:
            finding = _run(check, settings, patience).concealed()
        if finding.outcome not in (Verdict.OK, Verdict.WARN):
            unmet.add(check.name)
        yield check.name, finding


def _run(check: Check, settings: Settings, patience: float) -> Finding:
    try:
        return in_background(check.name, partial(check.run, settings)).result(patience)
    except TimeoutError:
        return Finding(Verdict.TROUBLE, f"no answer in {format_duration(patience)}")
    except AWAITED as error:
        return Finding(Verdict.TROUBLE, str(error))
    except BridgeError as error:
        return Finding(Verdict.FAIL, str(error))
    except Exception as error:  # noqa: BLE001  # whatever it is, the other checks still run
        # No failure: a defect here says nothing about `bridge run`.
        return Finding(Verdict.TROUBLE, f"unexpected: {error!r}", "Please report it.")
