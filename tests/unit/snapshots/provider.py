"""The provider's REST side without a network: answers by a script, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import httpx2
from joserfc import jwt
from joserfc.jwk import OctKey
from pydantic import SecretStr

from bridge.clock import Instant
from bridge.config import ApiSettings
from bridge.rest.answers import Answered
from bridge.rest.client import Client
from bridge.rest.endpoints import Questions, Request
from tests.virtual.loop import run

T = TypeVar("T")

AT = 1_790_000_000.0
"""When the virtual clock begins, Unix seconds."""
DATE = "Mon, 21 Sep 2026 14:13:20 GMT"
"""The same as an HTTP date."""
BASE = "https://provider.example"


def now() -> Instant:
    """The virtual moment."""
    elapsed = asyncio.get_running_loop().time()
    return Instant(AT + elapsed, elapsed)


def api(**changes: Any) -> ApiSettings:
    """Settings that suffice."""
    defaults = {"base_url": BASE, "requests_per_second": 10.0, "proxy": "none"}
    token = {} if "token_file" in changes else {"token": SecretStr("secret-token")}
    return ApiSettings(**{**defaults, **token, **changes})


SPORTS = Questions(api()).listed("sport", "en")
EVENT = Questions(api()).event(7)


def answered(request: Request[T], body: bytes) -> Answered[T]:
    """What a request makes of a body."""
    reader = request.reader(len(body))
    reader.feed(body)
    return reader.answer()


def minted(end: object, **claims: Any) -> str:
    """A JWT with that `exp`."""
    return jwt.encode({"alg": "HS256"}, {"exp": end, **claims}, OctKey.import_key("not-our-business"))


@dataclass(frozen=True)
class Reply:
    """What the provider answers."""

    status: int = 200
    body: str | bytes = "[]"
    headers: dict[str, str] | list[tuple[str, str]] = field(default_factory=dict)
    after: float = 0.0
    """Seconds later."""
    error: Callable[[str], Exception] | None = None
    """No answer, but this."""


class Provider:
    """Gives the replies of its script one after the other, and then good ones."""

    def __init__(self, *script: Reply, otherwise: Reply | None = None) -> None:
        self._script = list(script)
        self._otherwise = otherwise or Reply()
        self.sent_at: list[float] = []
        self.requests: list[httpx2.Request] = []
        self.under_way = self.most_under_way = 0

    def client(self, settings: ApiSettings | None = None) -> Client:
        """A client that asks here."""
        return Client(settings or api(), clock=now, network=httpx2.MockTransport(self._answer))

    def ask(self, *requests: Request[Any], at_once: bool = False, **changes: Any) -> list[Any]:
        """Ask with one client, in virtual time. Returns the answers, and an error in place of an answer."""

        async def story() -> list[Any]:
            results: list[Any] = []
            async with self.client(api(**changes)) as client:
                for group in [requests] if at_once else zip(requests, strict=True):
                    results += await asyncio.gather(*map(client.ask, group), return_exceptions=True)
            return results

        return run(story())

    @property
    def gaps(self) -> list[float]:
        """The seconds between the requests."""
        return [after - before for before, after in pairwise(self.sent_at)]

    @property
    def tokens(self) -> list[str]:
        """What was sent as `Authorization`, without `Bearer`."""
        return [request.headers["Authorization"].removeprefix("Bearer ") for request in self.requests]

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.sent_at.append(now().monotonic)
        self.requests.append(request)
        reply = self._script.pop(0) if self._script else self._otherwise
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        try:
            await asyncio.sleep(reply.after)
        finally:
            self.under_way -= 1
        if reply.error:
            raise reply.error("in the script")
        return httpx2.Response(reply.status, content=reply.body, headers=reply.headers)
