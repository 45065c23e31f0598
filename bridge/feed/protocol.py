"""The protocol of a connection, sans-IO: the request and the answers to pings.

Follows the interface, "Settlement feed" and "Events". What the interface leaves open (authentication,
the answer to a ping) is a setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

import orjson

from bridge.config import FeedSettings

PATH = "/feed/settlement/v4"
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


@dataclass(frozen=True, slots=True, repr=False)
class HandshakeRequest:
    """The handshake's request. Any part may hold a secret: it is never shown."""

    url: str
    headers: dict[str, str]
    secret: str = ""


def request(settings: FeedSettings, revision: int | None) -> HandshakeRequest:
    """Return the request for the messages from `revision` on, Unix seconds; None sends the interface's 0.

    Raises SettingsError if the credential's file cannot be read.
    """
    assert settings.base_url is not None
    scheme, _, rest = settings.base_url.partition("://")
    query = {"revision": str(revision or 0)}
    headers: dict[str, str] = {}
    name = settings.auth_name or ""
    secret = "" if settings.auth == "none" else settings.secret.read()
    match settings.auth:
        case "bearer":
            headers["Authorization"] = f"Bearer {secret}"
        case "header":
            headers[name] = secret
        case "query":
            query[name] = secret
        case "none":
            pass
    url = f"{_SCHEMES[scheme]}://{rest.rstrip('/')}{PATH}?{urlencode(query, quote_via=quote)}"
    return HandshakeRequest(url, headers, secret)


def ping_reply(setting: str, ping_id: str, body: bytes) -> str | None:
    """Return the answer to a ping received as `body`, by `feed.ping_reply`; None for no answer.

    In a template, `{pingId}` is replaced by the id, escaped for a JSON string.
    """
    match setting:
        case "none":
            return None
        case "echo":
            return body.decode()
        case template:
            return template.replace("{pingId}", orjson.dumps(ping_id).decode()[1:-1])
