"""The revision and the credentials of a handshake on the feed's path."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import parse_qs

from bridge.sandbox.provider.feed import Refusal
from bridge.sandbox.provider.settings import SimulatorSettings

Query = dict[str, list[str]]


class Asked(NamedTuple):
    """A handshake. It counts as an attempt, denied or not."""

    revision: int | None
    """None without one, or with one that is no number."""
    denied: Refusal | None = None
    """Why it is refused, regardless of the limits."""


def requested(settings: SimulatorSettings, query: str, header: Callable[[str], str]) -> Asked:
    """Return what a handshake asks for; without valid credentials the denial is 401.

    `header` gives the value of a header, empty where there is none (interface, "Settlement feed").
    """
    given = parse_qs(query, keep_blank_values=True)
    number = re.fullmatch(r"[0-9]{1,15}", given.get("revision", [""])[-1])
    revision = int(number[0]) if number else None
    if not _is_known(settings, given, header):
        return Asked(revision, Refusal(401, "the credentials are missing or wrong"))
    if "revision" in given and revision is None:
        return Asked(None, Refusal(400, "revision must be a Unix timestamp in seconds"))
    return Asked(revision)


def _is_known(settings: SimulatorSettings, query: Query, header: Callable[[str], str]) -> bool:
    if settings.auth == "none" or settings.auth_value is None:
        return True
    secret, name = settings.auth_value.get_secret_value(), settings.auth_name or ""
    if settings.auth == "query":
        given = query.get(name, [""])[-1]
    elif settings.auth == "header":
        given = header(name)
    else:
        secret, given = f"Bearer {secret}", header("Authorization")
    return hmac.compare_digest(given.encode(), secret.encode())
