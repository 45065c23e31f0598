"""What a handshake on the feed's path says, before it counts as an attempt."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from urllib.parse import parse_qs

from bridge.simulator.provider import UNAUTHORIZED, Refusal
from bridge.simulator.settings import SimulatorSettings

Query = dict[str, list[str]]


def requested(settings: SimulatorSettings, query: str, header: Callable[[str], str]) -> int | Refusal | None:
    """The revision asked for, None without one, or why nothing can be asked for.

    `header` gives the value of a header, empty where there is none (interface, "Settlement feed").
    """
    given = parse_qs(query, keep_blank_values=True)
    if not _is_known(settings, given, header):
        return Refusal(UNAUTHORIZED, "the credentials are missing or wrong")
    if "revision" not in given:
        return None
    revision = given["revision"][-1]
    if not re.fullmatch(r"[0-9]{1,15}", revision):
        return Refusal(400, "revision must be a Unix timestamp in seconds")
    return int(revision)


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
