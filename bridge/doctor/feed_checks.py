"""Checks of our own side and of the provider: settings, secrets, disk, checkpoint, limits, clock.

None connects to the feed, so none counts against the provider's limits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from bridge.clock_skew import Skew
from bridge.config import Settings
from bridge.doctor.finding import Finding, Outcome
from bridge.errors import SettingsError
from bridge.formatting import format_duration, format_utc
from bridge.inspection.limits import LimitForecast, usage_in_words
from bridge.inspection.readers import read_checkpoint, read_in_time
from bridge.kafka import admin, clients, topics
from bridge.kafka.registry import Registry
from bridge.observability.health import COMMIT_SECONDS
from bridge.rest.token import SOON_SECONDS, expiry, validity_of
from bridge.state.checkpoint import Checkpoint, State
from bridge.state.restore import StateReader

PACKAGE = Path(__file__).parents[1]
REQUIRED = ("feed.base_url", "kafka.bootstrap_servers", "registry.url")
"""Settings that `bridge run` needs."""
OF_RUN = ("feed", "kafka", "registry")
"""Sections of the settings whose files `bridge run` reads."""
DISK_BYTES = 1 << 30
"""Less free space than this is worth a warning: an export of a million bets needs about as much."""


def check_settings(settings: Settings) -> Finding:
    """Whether the required settings are set and every file is usable. Names secrets, shows no value."""
    names = [
        f"{section}.{name}"
        for section in sorted(settings.model_fields_set)
        for name in sorted(getattr(settings, section).model_fields_set)
    ]
    sections = Settings.model_fields
    secrets = [name for name, _ in settings.secrets(*sections)]
    own = settings.missing(*REQUIRED) + settings.unusable(*OF_RUN)
    of_jobs = settings.unusable(*(name for name in sections if name not in OF_RUN))
    if own or of_jobs:
        advice = "Give the secret as a value or as the path of a readable file." if secrets else ""
        return Finding(Outcome.FAIL if own else Outcome.TROUBLE, "\n".join(own + of_jobs), advice)
    readable = f"secrets that are readable: {', '.join(secrets)}" if secrets else "no secrets configured"
    return Finding(Outcome.OK, f"set: {', '.join(names)}\n{readable}")


def outdated(package: Path) -> list[str]:
    """Return the sources in a checkout that are newer than the compiled modules that run in their place.

    Only this Python's modules count. An installed package has none: unpacking a wheel sets the times in any
    order.
    """
    if not (package.parent / "setup.py").exists():
        return []
    pairs = [
        (built, built.with_name(f"{built.name.partition('.')[0]}.py"))
        for built in package.rglob(f"*{EXTENSION_SUFFIXES[0]}")
    ]
    return sorted(
        str(source.relative_to(package.parent))
        for built, source in pairs
        if source.exists() and built.stat().st_mtime < source.stat().st_mtime
    )


def assess_form(is_compiled: bool, outdated: Collection[str]) -> Finding:
    """Whether the modules that handle every message are compiled, and from sources that are current."""
    if not is_compiled:
        return Finding(
            Outcome.WARN,
            "the hot path runs as plain Python, which is slower",
            "Install a C compiler and Python's headers (Debian: build-essential, python3-dev), then run "
            "`make -B setup` in a checkout, which says how to see what fails; or install a wheel built "
            "with them.",
        )
    if outdated:
        return Finding(
            Outcome.WARN,
            f"the hot path is compiled from an older source than {', '.join(outdated)}, and that runs",
            "Run `make setup` to compile the current sources.",
        )
    return Finding(Outcome.OK, "the hot path is compiled")


def check_tokens(settings: Settings, now: float) -> Finding:
    """Whether the tokens are valid at `now`, Unix seconds, by the `exp` of those that are JWTs.

    An expired one of the feed ends `bridge run`, if the provider refuses it. One that cannot be read is left
    to `check_settings`.
    """
    read: dict[str, Callable[[], str]] = {}
    if settings.feed.auth != "none":
        read["feed.auth_value"] = settings.feed.auth_secret
    if settings.api.token is not None or settings.api.token_file is not None:
        read["api.token"] = settings.api.bearer
    tokens = {}
    for name, secret in read.items():
        with suppress(SettingsError):
            tokens[name] = secret()
    lines = [f"{name} {validity_of(token, now)}" for name, token in tokens.items()]
    message = "\n".join([*lines, *(f"{name} needs settings" for name in read if name not in tokens)])
    left = {name: end - now for name, token in tokens.items() if (end := expiry(token)) is not None}
    advice = "Give a new token; one in a file is read again without a restart."
    if expired := [name for name, seconds in left.items() if seconds <= 0]:
        outcome = Outcome.FAIL if "feed.auth_value" in expired else Outcome.TROUBLE
        return Finding(outcome, message, advice)
    if any(seconds <= SOON_SECONDS for seconds in left.values()):
        return Finding(Outcome.WARN, message, advice)
    if len(tokens) < len(read):
        return Finding(Outcome.SKIPPED, message)
    return Finding(Outcome.OK, message or "no token is configured")


def assess_disk(directory: Path, free: int) -> Finding:
    """Whether an export has room in the current directory, where `free` bytes are left."""
    message = f"{free / (1 << 30):.1f} GiB free in {directory}; `bridge run` writes no file"
    if free < DISK_BYTES:
        return Finding(
            Outcome.WARN, message, "Make room, or have `replay` and `deadletters` write elsewhere."
        )
    return Finding(Outcome.OK, message)


def assess_clock(settings: Settings, skew: Skew | None) -> Finding:
    """Whether the provider's clock is near enough to ours; None if the provider does not send its time."""
    if skew is None:
        return Finding(Outcome.WARN, "the provider answers without its time: the clock skew is unknown")
    seconds, limit = skew.seconds, settings.feed.max_clock_skew_seconds
    if not seconds:
        return Finding(Outcome.OK, "the provider answers, and its clock agrees with ours")
    direction = "ahead of" if seconds > 0 else "behind"
    message = (
        f"the provider answers, and its clock is at least {format_duration(abs(seconds))} {direction} ours"
    )
    if abs(seconds) <= limit:
        return Finding(Outcome.OK, message)
    advice = "Correct this machine's clock by NTP; if it is correct, tell the provider."
    return Finding(Outcome.FAIL, f"{message}; more than {format_duration(limit)} stop the bridge", advice)


def committed(settings: Settings) -> Checkpoint | None:
    """Read the feed's checkpoint; None before the first, or before its topic exists."""
    topic = topics.declare(settings).checkpoints.name
    exists = admin.topic_id(clients.admin(settings.kafka), topic, admin.LOOK_SECONDS) is not None
    return read_checkpoint(settings) if exists else None


def check_feeds(settings: Settings) -> Finding:
    """Whether no other feed uses the topics. Raises TopologyError, which names it, and as the readers."""
    declared = topics.declare(settings)
    alone = Finding(Outcome.OK, f"no other feed uses {settings.topics.prefix}.…")
    if admin.topic_id(clients.admin(settings.kafka), declared.checkpoints.name, admin.LOOK_SECONDS) is None:
        return alone
    with Registry(settings.registry) as registry:
        state = StateReader(settings, declared, registry.schema_by_id)
        refuse = partial(state.refuse_other_feeds, visible=True)
        read_in_time(declared.checkpoints.name, refuse)
    return alone


def assess_checkpoint(settings: Settings, checkpoint: Checkpoint | None, now: float) -> Finding:
    """Whether the feed can be resumed, and reconnected within the limits, at `now`, Unix seconds."""
    if checkpoint is None:
        return Finding(Outcome.OK, f"none yet: the first run begins with feed.start = {settings.feed.start}")
    outcome, message, advice = _position(settings, checkpoint, now)
    limits = LimitForecast(settings, checkpoint, now, checkpoint.revision)
    used = ", ".join(f"{limit.name} {usage_in_words(limit)}" for limit in limits.usage)
    if limits.reconnect.until <= now:
        return Finding(outcome, f"{message}\nthe limits allow a reconnect now; used: {used}", advice)
    until, reason = format_utc(limits.reconnect.until), limits.reconnect.reason
    wait = f"the limits allow a reconnect at {until}: {reason}; used: {used}"
    worst = outcome if outcome is Outcome.FAIL else Outcome.TROUBLE
    return Finding(worst, f"{message}\n{wait}", advice)


def _position(settings: Settings, checkpoint: Checkpoint, now: float) -> Finding:
    see = 'See "Exit 5" in docs/operations.md, and `bridge gaps`.'
    if checkpoint.state is State.STOPPED_ON_GAP and settings.feed.on_gap == "stop":
        return Finding(Outcome.FAIL, f"StoppedOnGap: {checkpoint.reason}", see)
    memory = settings.limits.memory_seconds
    age = max(0.0, now + (checkpoint.skew or 0.0) - checkpoint.revision)
    message = f"{checkpoint.state.value}, the position is {format_duration(age)} old"
    if age > memory:
        # No failure, although the bridge may stop on the gap: it has to start to declare it.
        lost = f"{message}: the feed can no longer replay everything since; `bridge run` declares a gap"
        return Finding(Outcome.TROUBLE, lost, see)
    still = now - checkpoint.updated_at
    if still > settings.feed.idle_timeout_seconds + COMMIT_SECONDS:
        return Finding(
            Outcome.WARN,
            f"{message}; no commit for {format_duration(still)}",
            f"Start a bridge before {format_utc(checkpoint.revision + memory)}: from then on the provider "
            "discards messages that are not published.",
        )
    return Finding(Outcome.OK, message)
