"""The one wrapper of the HTTP client: a GET goes out, and an answer comes back, neither late nor huge."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

import httpx2

from bridge import tls
from bridge.config import ApiSettings
from bridge.errors import ApiError, SettingsError

Network: TypeAlias = httpx2.AsyncBaseTransport
"""What takes a request and gives a response."""

MOST_BYTES: Final = 32 * 1024 * 1024
"""Of an answer, unpacked."""
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
    body: bytearray

    def __str__(self) -> str:
        """`HTTP 503: ` and how its body begins, when that is text."""
        excerpt = self._excerpt()
        return f"HTTP {self.status}{excerpt and ': '}{excerpt}"

    def _excerpt(self) -> str:
        try:
            # Not final: a character that was cut in two at the end does not make a text none.
            text = codecs.getincrementaldecoder("utf-8")().decode(self.body)
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

    async def get(self, target: str, token: str) -> Answer:
        """Ask for `target`, a path and query.

        Raises Unavailable when no whole answer comes in time, ApiError when it is too large.
        """
        headers = {"Authorization": f"Bearer {token}"}
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._http.stream("GET", self.base + target, headers=headers) as response,
            ):
                body = await _read(response, target)
        except TimeoutError:
            raise Unavailable(f"no answer in {self._timeout:g} s (BRIDGE_API__TIMEOUT_SECONDS)") from None
        except httpx2.RequestError as error:
            raise Unavailable(str(error) or type(error).__name__) from None
        if response.status_code != 200:
            # It ends up in a text for people, and a provider may say in it which token it did not like.
            body = body.replace(token.encode(), b"***")
        return Answer(response.status_code, response.headers, body)

    def pointed_to(self, target: str, location: str) -> str:
        """The host that a redirect of `target` names: nothing else of the address, which may hold secrets."""
        try:
            return urlsplit(urljoin(self.base + target, location)).hostname or "nowhere"
        except ValueError:
            return "what is no address"


async def _read(response: httpx2.Response, target: str) -> bytearray:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        if response.status_code == 200:
            body += chunk
            if len(body) > MOST_BYTES:
                raise ApiError(f"GET {target} answered more than {MOST_BYTES >> 20} MiB")
        else:
            body += chunk[: MOST_REFUSAL_BYTES - len(body)]
    return body


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
