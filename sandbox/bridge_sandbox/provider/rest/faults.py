"""Answers of the REST side, and the faults that can be put in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.client import responses
from typing import Annotated, Self

import orjson
from pydantic import Field, model_validator

from bridge_sandbox.provider.model import Model
from bridge_sandbox.provider.rest.routes import Endpoint

Positive = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes out."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    """Those that say more than how long the body is."""
    delay: float = 0
    """Seconds to wait before it goes out."""


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Answer:
    """Return a refusal. The interface does not show the shape of its body; this one is that of RFC 9457."""
    body = {
        "type": "about:blank",
        "title": responses.get(status, "Unknown"),
        "status": status,
        "detail": detail,
    }
    return Answer(status, orjson.dumps(body), {"Content-Type": "application/problem+json", **(headers or {})})


class RestFault(Model):
    """What goes wrong, at which requests. Raises pydantic's ValidationError when it makes no sense.

    Requests are counted from the moment the fault was injected, those to its endpoint only.
    """

    endpoint: Endpoint | None = None
    """None is any of them."""
    nth: Positive = 1
    """The first request it strikes, from 1."""
    times: Positive | None = 1
    """Number of requests in a row that it affects; None for no end."""

    status: Annotated[int, Field(ge=200, le=599)] | None = None
    """Answer with this status, whatever was asked by whom. A redirect needs `headers` too."""
    body: str | None = None
    """Answer with this body, such as HTML or JSON of a wrong shape; with status 200 by default."""
    headers: dict[str, str] = Field(default={})
    """Headers to add or to replace, such as `Content-Type`, `Location` or `Retry-After`."""
    truncate: bool = False
    """Send the first half of the body only, as if that were all."""
    delay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    """Seconds to wait with the answer."""

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not (self.status or self.body is not None or self.headers or self.truncate or self.delay):
            raise ValueError("a fault needs at least one of status, body, headers, truncate and delay")
        return self

    def spoil(self, proper: Callable[[], Answer]) -> Answer:
        """Return the answer to give. `proper` makes the right one, and is called only if needed."""
        if self.body is not None:
            answer = Answer(self.status or 200, self.body.encode())
        elif self.status:
            answer = problem(self.status, "this was injected")
        else:
            answer = proper()
        body = answer.body[: len(answer.body) // 2] if self.truncate else answer.body
        return replace(answer, body=body, headers=answer.headers | self.headers, delay=self.delay)


class RestFaults:
    """The faults that were injected. Where several strike one request, the first injected does."""

    def __init__(self) -> None:
        self._seen: list[tuple[RestFault, int]] = []

    def inject(self, fault: RestFault) -> None:
        """Add a fault, which counts requests from now on."""
        self._seen.append((fault, 0))

    def clear(self) -> None:
        """End all faults."""
        self._seen.clear()

    def strike(self, endpoint: Endpoint) -> RestFault | None:
        """Return the fault that strikes the request now arriving at the endpoint, None if none does."""
        struck = None
        for place, (fault, seen) in enumerate(self._seen):
            if fault.endpoint not in (None, endpoint):
                continue
            self._seen[place] = fault, seen + 1
            if seen + 1 >= fault.nth and (fault.times is None or seen + 1 < fault.nth + fault.times):
                struck = struck or fault
        return struck
