"""One connection's life, sans-IO: what to ask for, how to answer pings, when silence is too long.

Follows the interface, "Settlement feed" and "Events". What the interface leaves open (authentication,
the answer to a ping) is a setting. Times are monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

import orjson

from bridge.config import FeedSettings

PATH = "/feed/settlement/v4"
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


@dataclass(frozen=True, slots=True, repr=False)
class Request:
    """What to dial. Every part may hold a secret: none is ever shown."""

    url: str
    headers: dict[str, str]
    secret: str = ""

    def without_secret(self, text: str) -> str:
        """A text of somebody else's that may be shown, as far as the credential goes."""
        if not self.secret:
            return text
        return text.replace(self.secret, "**********").replace(quote(self.secret, safe=""), "**********")


def request(settings: FeedSettings, revision: int | None) -> Request:
    """The request for the messages from `revision` on, Unix seconds; None asks with the interface's 0.

    Raises SettingsError when the file of the credential cannot be read.
    """
    assert settings.base_url is not None
    scheme, _, rest = settings.base_url.partition("://")
    query = {"revision": str(revision or 0)}
    headers: dict[str, str] = {}
    name = settings.auth_name or ""
    secret = "" if settings.auth == "none" else settings.auth_secret()
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
    return Request(url, headers, secret)


class Session:
    """The rules of a connection that is open."""

    def __init__(self, settings: FeedSettings, now: float) -> None:
        self._settings = settings
        self._heard_at = now

    def heard(self, now: float) -> None:
        """Something came through the socket, whatever it was."""
        self._heard_at = max(self._heard_at, now)

    @property
    def silent_at(self) -> float:
        """When the socket is to be taken for half-open, unless something comes before."""
        return self._heard_at + self._settings.idle_timeout_seconds

    def reply(self, ping_id: str, body: bytes) -> str | None:
        """What to send for a ping that came as `body`; None for nothing.

        In a template `{pingId}` stands for the id as it must be written inside a JSON string.
        """
        match self._settings.ping_reply:
            case "none":
                return None
            case "echo":
                return body.decode()
            case template:
                return template.replace("{pingId}", orjson.dumps(ping_id).decode()[1:-1])
