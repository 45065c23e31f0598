"""The one wrapper of the HTTP client: a GET goes out, and its answer is handed on while it comes."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

import httpx2

from bridge import tls
from bridge.config import ApiSettings
from bridge.errors import SettingsError

Network: TypeAlias = httpx2.AsyncBaseTransport
"""What takes a request and gives a response."""

MOST_REFUSAL_BYTES: Final = 64 * 1024
"""Of the body of any status but 200: people read the beginning of it."""
EXCERPT_CHARACTERS: Final = 200


class Unavailable(Exception):
    """This try failed in a way that the next one may not. The text says how."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, with the names of its headers in any case."""

    status: int
    headers: Mapping[str, str]
    dates: tuple[str, ...]
    """Every `Date` among them."""
    refusal: bytes
    """How the body of any status but 200 begins."""

    def __str__(self) -> str:
        """`HTTP 503: ` and how its body begins, when that is text."""
        excerpt = self._excerpt()
        return f"HTTP {self.status}{excerpt and ': '}{excerpt}"

    def _excerpt(self) -> str:
        try:
            # Not final: a character that was cut in two at the end does not make a text none.
            text = codecs.getincrementaldecoder("utf-8")().decode(self.refusal)
        except UnicodeDecodeError:
            return ""
        line = " ".join(text.split())
        return line[:EXCERPT_CHARACTERS] if line.isprintable() else ""


class Transport:
    """Connections to the provider, kept alive between requests. Redirects are not followed.

    Raises SettingsError when the base address, the proxy or the certificate authority cannot be used.
    `network` stands in for the real one.
    """

    def __init__(self, settings: ApiSettings, network: Network | None = None) -> None:
        self.base = _base(settings)
        """The address that every request goes to, without a user's name and password."""
        self._timeout = settings.timeout_seconds
        self._http = _client(settings, network)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def get(self, target: str, token: str, take: Callable[[bytes], bool], body: str = "") -> Answer:
        """Ask for `target`, a path and query, with a JSON `body`.

        `take` gets the pieces of what comes with status 200, and says whether the rest is wanted. Raises
        Unavailable when no whole answer comes in time.
        """
        headers = {"Authorization": f"Bearer {token}"} | (
            {"Content-Type": "application/json"} if body else {}
        )
        refusal = bytearray()
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._http.stream(
                    "GET", self.base + target, headers=headers, content=body.encode() or None
                ) as response,
            ):
                async for piece in response.aiter_bytes():  # unpacked, at most a mebibyte of it at once
                    if response.status_code != 200:
                        refusal += piece[: MOST_REFUSAL_BYTES - len(refusal)]
                    elif not take(piece):
                        break
                    await asyncio.sleep(0)  # so that time goes on, however much comes of one packet
        except TimeoutError:
            raise Unavailable(f"no answer in {self._timeout:g} s (BRIDGE_API__TIMEOUT_SECONDS)") from None
        except httpx2.RequestError as error:
            raise Unavailable(str(error) or type(error).__name__) from None
        return Answer(
            response.status_code,
            response.headers,
            tuple(response.headers.get_list("Date")),
            # It ends up in a text for people, and a provider may say in it which token it did not like.
            bytes(refusal.replace(token.encode(), b"***")),
        )

    def pointed_to(self, target: str, location: str) -> str:
        """The host that a redirect of `target` names: nothing else of the address, which may hold secrets."""
        try:
            return urlsplit(urljoin(self.base + target, location)).hostname or "nowhere"
        except ValueError:
            return "what is no address"


def _base(settings: ApiSettings) -> str:
    if settings.base_url is None:
        raise SettingsError(
            "api.base_url is not set. Set BRIDGE_API__BASE_URL to the provider's base address, such as "
            "https://provider.example."
        )
    url = urlsplit(settings.base_url)
    host = url.netloc.rpartition("@")[2]  # what is before the @ would be sent in place of the token
    base = f"{url.scheme}://{host}{url.path.rstrip('/')}"
    try:
        httpx2.URL(base)
    except httpx2.InvalidURL:
        raise SettingsError(
            "api.base_url (BRIDGE_API__BASE_URL) is no address. Give one such as https://provider.example."
        ) from None
    return base


def _client(settings: ApiSettings, network: Network | None) -> httpx2.AsyncClient:
    most = settings.concurrency
    try:
        return httpx2.AsyncClient(
            transport=network,
            verify=tls.context("api", settings.ca_file),
            proxy=None if settings.proxy in ("env", "none") else settings.proxy,
            trust_env=settings.proxy == "env",
            timeout=None,  # one limit for all of a request, in `get`
            limits=httpx2.Limits(max_connections=most, max_keepalive_connections=most),
            headers={"Accept": "application/json", "User-Agent": "settlement-bridge"},
        )
    except (httpx2.InvalidURL, ImportError, ValueError):  # not shown: a proxy's address may hold a password
        raise SettingsError(
            "api.proxy (BRIDGE_API__PROXY, or HTTPS_PROXY and its kin) cannot be used. Give an address "
            'such as http://proxy.example:3128, "env" or "none"; SOCKS needs the package socksio.'
        ) from None
