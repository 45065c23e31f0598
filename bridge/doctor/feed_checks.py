"""What the doctor looks at on our side and on the provider's: settings, secrets, position, limits, clock.

Nothing of it connects to the feed, so nothing of it counts against the provider's limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

from bridge import clock
from bridge.avro.encoder import compiled
from bridge.clock import AnchoredClock
from bridge.clock_skew import Skew
from bridge.config import Settings, env_name
from bridge.doctor.finding import Finding, Outcome
from bridge.errors import SettingsError
from bridge.feed.provider_clock import ask
from bridge.formatting import duration, utc
from bridge.inspection.limits import forecast
from bridge.inspection.readers import read_checkpoint
from bridge.kafka import admin, clients, topics
from bridge.observability.health import COMMIT_SECONDS
from bridge.state.checkpoint import Checkpoint, State

PACKAGE = Path(__file__).parents[1]
ASK_SECONDS = 5.0
NEEDED = ("feed.base_url", "kafka.bootstrap_servers", "registry.url")
"""What `bridge run` cannot do without."""


def settings_told(settings: Settings) -> Finding:
    """Which settings differ from the defaults, by name: a value may be a secret."""
    names = [
        f"{section}.{name}"
        for section in sorted(settings.model_fields_set)
        for name in sorted(getattr(settings, section).model_fields_set)
    ]
    settings.need(*NEEDED)
    return Finding(Outcome.OK, f"set: {', '.join(names)}")


def hot_path_compiled(settings: Settings) -> Finding:
    """Whether the modules that run for every message are compiled, and what reads the messages."""
    return judged_form(compiled(), outdated(PACKAGE), settings.feed.converter)


def outdated(package: Path) -> list[str]:
    """The sources in a checkout's package that are newer than their compiled form, which runs in their place.

    What is installed from a wheel is as old as the moment it was unpacked, in any order: it has none.
    """
    if not (package.parent / "setup.py").exists():
        return []
    forms = [(form, form.with_name(f"{form.name.partition('.')[0]}.py")) for form in package.rglob("*.so")]
    return sorted(
        str(source.relative_to(package.parent))
        for form, source in forms
        if source.exists() and form.stat().st_mtime < source.stat().st_mtime
    )


def judged_form(is_compiled: bool, outdated: Collection[str], converter: str) -> Finding:
    """What is to be said of the form in which the hot modules run, and of sources newer than it."""
    if is_compiled and outdated:
        seen = (
            f"the hot path is compiled from an older source than {', '.join(outdated)}, and that runs; "
            f"feed.converter is {converter}"
        )
        return Finding(Outcome.WARN, seen, "Run `make setup`: it compiles what was pulled or edited.")
    if is_compiled:
        return Finding(Outcome.OK, f"the hot path is compiled; feed.converter is {converter}")
    advice = (
        "Install a C compiler and Python's headers (on Debian: build-essential, python3-dev), then `make -B "
        "setup` in a checkout, which says how to see what is in the way; or install a wheel that was built "
        "where they are."
    )
    seen = "the hot path runs as plain Python: the same, more slowly"
    if converter != "pydantic":
        seen += f"; feed.converter is pydantic, not {converter} as was asked"
    return Finding(Outcome.WARN, seen, advice)


def secrets_readable(settings: Settings) -> Finding:
    """Whether every secret that is given can be read, and is not empty. None is shown."""
    names, troubles = [], []
    for name, read in _secrets(settings):
        names.append(name)
        try:
            if not read():
                troubles.append(f"{name} is empty")
        except SettingsError as error:
            troubles.append(str(error))
    if troubles:
        return Finding(Outcome.FAIL, "\n".join(troubles), "Give the secret, or the path of a readable file.")
    return Finding(Outcome.OK, f"readable: {', '.join(names)}" if names else "none is needed")


def _secrets(settings: Settings) -> Iterator[tuple[str, Callable[[], object]]]:
    """The variable that names a secret, and what reads it."""
    if settings.feed.auth != "none":
        yield env_name("feed", "auth_value"), settings.feed.auth_secret
    if settings.registry.user is not None:
        yield env_name("registry", "password"), settings.registry.secret
    if settings.api.token is not None or settings.api.token_file is not None:
        yield env_name("api", "token"), settings.api.bearer
    given = (settings.kafka.model_extra or {}).keys()
    for name in ("sasl_password", "ssl_key_password"):
        if not given.isdisjoint({name, f"{name}_file"}):
            yield env_name("kafka", name), partial(_kafka_property, settings, name.replace("_", "."))


def _kafka_property(settings: Settings, name: str) -> object:
    return settings.kafka.properties()[name]


def provider_answers(settings: Settings) -> Finding:
    """Whether the provider answers outside its feed, and how far its clock is from ours."""
    skew = asyncio.run(ask(settings.feed))
    return judged_clock(settings, skew and skew.by(AnchoredClock().offset))


def judged_clock(settings: Settings, skew: Skew | None) -> Finding:
    """What is to be said of a skew that was measured; None where the provider does not tell the time."""
    if skew is None:
        return Finding(
            Outcome.WARN, "it answers, but does not tell the time: the skew of its clock is not known"
        )
    off, most = skew.seconds, settings.feed.max_clock_skew_seconds
    if not off:
        return Finding(Outcome.OK, "it answers, and its clock agrees with ours")
    direction = "ahead of" if off > 0 else "behind"
    seen = f"it answers, and its clock is at least {abs(off):.1f} s {direction} ours"
    if abs(off) > most:
        return Finding(
            Outcome.FAIL,
            f"{seen}; more than {most:g} s stop the bridge",
            "Set this machine's clock right, by NTP; if it is right, tell the provider.",
        )
    return Finding(Outcome.OK, seen)


def checkpoint_fresh(settings: Settings) -> Finding:
    """How old the committed position is, and until when the feed can still be resumed from it."""
    return judged_checkpoint(settings, _committed(settings), clock.now().wall)


def _committed(settings: Settings) -> Checkpoint | None:
    """The feed's checkpoint; None before the first, also where its topic is still to come."""
    topic = topics.declare(settings).checkpoints.name
    present = admin.topic_id(clients.admin(settings.kafka), topic, ASK_SECONDS) is not None
    return read_checkpoint(settings) if present else None


def judged_checkpoint(settings: Settings, checkpoint: Checkpoint | None, now: float) -> Finding:
    """What is to be said of a checkpoint at a moment, Unix seconds; None before the first."""
    if checkpoint is None:
        return Finding(
            Outcome.OK, f"there is none yet: the first run begins with feed.start = {settings.feed.start}"
        )
    if checkpoint.state is State.STOPPED_ON_GAP and settings.feed.on_gap == "stop":
        return Finding(
            Outcome.FAIL,
            f"StoppedOnGap: {checkpoint.reason}",
            'See "Exit 5" in docs/operations.md, and `bridge gaps`.',
        )
    memory = settings.limits.memory_seconds
    age = max(0.0, now + (checkpoint.skew or 0.0) - checkpoint.revision)
    seen = f"{checkpoint.state.value}, the position is {duration(age)} old"
    if age > memory:
        return Finding(
            Outcome.FAIL,
            f"{seen}: the feed cannot give back all that was published since",
            'See "Exit 5" in docs/operations.md, and `bridge gaps`.',
        )
    still = now - checkpoint.updated_at
    if still > settings.feed.idle_timeout_seconds + COMMIT_SECONDS:
        forgotten = utc(checkpoint.revision + memory)
        return Finding(
            Outcome.WARN,
            f"{seen}; nothing was committed for {duration(still)}",
            f"Have a bridge connected before {forgotten}: then the feed begins to forget what is missing.",
        )
    return Finding(Outcome.OK, seen)


def limits_have_room(settings: Settings) -> Finding:
    """Whether a reconnect would be let in now, by the ledger of the checkpoint."""
    return judged_limits(settings, _committed(settings), clock.now().wall)


def judged_limits(settings: Settings, checkpoint: Checkpoint | None, now: float) -> Finding:
    """What is to be said of a ledger at a moment, Unix seconds; None before the first checkpoint."""
    if checkpoint is None:
        return Finding(Outcome.OK, "nothing was asked of the feed yet")
    seen = forecast(settings, checkpoint, now, checkpoint.revision)
    used = ", ".join(f"{room.name} {room.used:.0f} of {room.allowed:g}" for room in seen.usage)
    if seen.dial_at > now:
        until = utc(seen.dial_at)
        return Finding(Outcome.WARN, f"a reconnect has to wait until {until}: {seen.reason}\nused: {used}")
    return Finding(Outcome.OK, f"a reconnect would be let in now; used: {used}")
