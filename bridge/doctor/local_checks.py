"""Checks of what is on this machine: settings, secrets and tokens, the compiled form."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from bridge.config import Settings
from bridge.doctor.finding import Finding, Verdict
from bridge.errors import SettingsError
from bridge.rest.token import SOON_SECONDS, expiry, validity_of

PACKAGE = Path(__file__).parents[1]
REQUIRED = ("feed.base_url", "kafka.bootstrap_servers", "registry.url")
"""Settings that `bridge run` needs."""
OF_RUN = ("feed", "kafka", "registry")
"""Sections of the settings whose files `bridge run` reads."""


def check_settings(settings: Settings) -> Finding:
    """Whether the required settings are set and every file is usable. Names secrets, shows no value."""
    names = [
        f"{section}.{name}"
        for section in sorted(settings.model_fields_set)
        for name in sorted(getattr(settings, section).model_fields_set)
    ]
    sections = Settings.model_fields
    secrets = [secret.variable for secret in settings.secrets(*sections)]
    missing, unusable = settings.missing(*REQUIRED), settings.unusable(*OF_RUN)
    of_jobs = settings.missing("api.token") if settings.api.base_url else []
    of_jobs += settings.unusable(*(name for name in sections if name not in OF_RUN))
    if missing or unusable or of_jobs:
        advice = "Give a secret as a value or as the path of a readable file." if unusable or of_jobs else ""
        outcome = Verdict.FAIL if missing or unusable else Verdict.TROUBLE
        return Finding(outcome, "\n".join(missing + unusable + of_jobs), advice)
    readable = f"readable secrets: {', '.join(secrets)}" if secrets else "no secrets configured"
    return Finding(Verdict.OK, f"file: {settings.file or 'none'}\nset: {', '.join(names)}\n{readable}")


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
            Verdict.WARN,
            "the hot path runs as plain Python, which is slower",
            "Install a C compiler and Python's headers (Debian: build-essential, python3-dev), then run "
            "`make -B setup` in a checkout, which says how to see what fails; or install a wheel built "
            "with them.",
        )
    if outdated:
        return Finding(
            Verdict.WARN,
            f"the compiled hot path is what runs, but it is older than the source of {', '.join(outdated)}",
            "Run `make setup` to compile the current sources.",
        )
    return Finding(Verdict.OK, "the hot path is compiled")


def check_tokens(settings: Settings, now: float) -> Finding:
    """Whether the tokens are valid at `now`, Unix seconds, by the `exp` of those that are JWTs.

    An expired one of the feed ends `bridge run`, if the provider refuses it. One that cannot be read is left
    to `check_settings`.
    """
    secrets = [secret for secret in settings.secrets("feed", "registry", "api") if secret.user is None]
    tokens = {}
    for secret in secrets:
        with suppress(SettingsError):
            tokens[secret.setting] = secret.read()
    lines = [f"{name} {validity_of(token, now)}" for name, token in tokens.items()]
    lines += [f"{it.setting} needs settings" for it in secrets if it.setting not in tokens]
    message = "\n".join(lines)
    left = {name: end - now for name, token in tokens.items() if (end := expiry(token)) is not None}
    advice = "Give a new token; one in a file is read again without a restart."
    if expired := [name for name, seconds in left.items() if seconds <= 0]:
        outcome = Verdict.FAIL if "feed.auth_value" in expired else Verdict.TROUBLE
        return Finding(outcome, message, advice)
    if any(seconds <= SOON_SECONDS for seconds in left.values()):
        return Finding(Verdict.WARN, message, advice)
    if len(tokens) < len(secrets):
        return Finding(Verdict.SKIPPED, message)
    return Finding(Verdict.OK, message or "no token is configured")
