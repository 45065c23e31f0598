"""Wraps the HTTP client: sends a GET and hands its body on while it arrives."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

import httpx2

from bridge.config import ApiSettings, proxy_of, tls
from bridge.formatting import format_duration, plain_error
from bridge.masking import concealed

Network: TypeAlias = httpx2.AsyncBaseTransport
"""Turns a request into a response."""

MAX_REFUSAL_BYTES: Final = 64 * 1024
"""Read from the body of any status but 200: only its beginning is shown."""
REFUSAL_SECONDS: Final = 5.0
"""How long it is read for: the status counts without it."""
EXCERPT_CHARACTERS: Final = 200
KNOCK_SECONDS: Final = 10.0
"""Time limit of a request for the base address."""


class Unavailable(Exception):
    """This attempt failed, and another may succeed. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: httpx2.Headers
    refusal: bytes
    """The beginning of the body, if the status is not 200."""

    def __str__(self) -> str:
        """Return `HTTP 503: ` and the beginning of the body, if that is text: it may quote the token."""
        excerpt = self._excerpt()
        return f"HTTP {self.status}{excerpt and ': '}{excerpt}"

    def _excerpt(self) -> str:
        try:
            # Not final: the text may have been cut within a character.
            text = codecs.getincrementaldecoder("utf-8")().decode(self.refusal)
        except UnicodeDecodeError:
            return ""
        line = " ".join(concealed(text).split())
        return line[:EXCERPT_CHARACTERS] if line.isprintable() else ""


class Transport:
    """Keeps connections to the provider alive between requests. Does not follow redirects.

    Raises SettingsError if the proxy or the CA file cannot be used. `network` replaces the real network in
    tests.
    """

    def __init__(self, settings: ApiSettings, network: Network | None = None) -> None:
        self.base = _base(settings)
        """The base address of all requests, without user name and password."""
        self._timeout = settings.timeout_seconds
        most = settings.concurrency
        self._http = httpx2.AsyncClient(
            transport=network,
            verify=tls.context("api", settings),
            proxy=proxy_of("api", self.base, settings.proxy),
            trust_env=False,
            timeout=None,  # `get` has one for the whole request
            limits=httpx2.Limits(max_connections=most, max_keepalive_connections=most),
            headers={"Accept": "application/json", "User-Agent": "settlement-bridge"},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def get(self, target: str, token: str, take: Callable[[bytes], bool], body: str = "") -> Answer:
        """Send a GET for `target` (path and query) with a JSON `body`.

        Passes the pieces of a body with status 200 to `take`, which returns whether the rest is wanted.
        Raises Unavailable if no answer arrives in time; one with another status counts without the rest of
        its body.
        """
        headers = {"Authorization": f"Bearer {token}"} | (
            {"Content-Type": "application/json"} if body else {}
        )
        refusal = b""
        async with (
            _in_time(self._timeout, "BRIDGE_API__TIMEOUT_SECONDS"),
            self._http.stream(
                "GET", self.base + target, headers=headers, content=body.encode() or None
            ) as response,
        ):
            if response.status_code != 200:
                refusal = await _beginning(response, min(REFUSAL_SECONDS, self._timeout / 2))
            else:
                async for piece in response.aiter_bytes():  # decompressed, at most 1 MiB at once
                    if not take(piece):
                        break
                    await asyncio.sleep(0)  # lets the timeout fire, however much one packet decompresses to
        return Answer(response.status_code, response.headers, refusal)

    async def knock(self) -> int:
        """Send a GET for the base address, without the token; return the status, whatever it is.

        It is no endpoint of the interface, so no limit counts it. Raises Unavailable if no answer arrives in
        time.
        """
        async with _in_time(KNOCK_SECONDS), self._http.stream("GET", f"{self.base}/") as response:
            return response.status_code

    def pointed_to(self, target: str, location: str) -> str:
        """Return the host that a redirect points to; the rest of the address may hold secrets."""
        try:
            return urlsplit(urljoin(self.base + target, location)).hostname or "nowhere"
        except ValueError:
            return "an invalid address"


async def _beginning(response: httpx2.Response, seconds: float) -> bytes:
    """Return the first MAX_REFUSAL_BYTES of a body, or as much of it as comes in time."""
    found = bytearray()
    with suppress(httpx2.RequestError, TimeoutError):
        async with asyncio.timeout(seconds):
            async for piece in response.aiter_bytes():
                found += piece[: MAX_REFUSAL_BYTES - len(found)]
                if len(found) == MAX_REFUSAL_BYTES:
                    break
                await asyncio.sleep(0)  # as above
    return bytes(found)


@asynccontextmanager
async def _in_time(seconds: float, setting: str = "") -> AsyncIterator[None]:
    """Limit the time of a request, and translate the HTTP client's errors. Raises Unavailable."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        limit = f"{format_duration(seconds)}{setting and f' ({setting})'}"
        raise Unavailable(f"no answer in {limit}") from None
    except httpx2.RequestError as error:
        raise Unavailable(plain_error(error)) from None


def _base(settings: ApiSettings) -> str:
    assert settings.base_url is not None
    url = urlsplit(settings.base_url)
    host = url.netloc.rpartition("@")[2]  # credentials before the @ would replace the token
    return f"{url.scheme}://{host}{url.path.rstrip('/')}"
