"""The control endpoint: injects faults into the provider and returns the truth, as JSON over HTTP.

A WSGI application, served from threads that do not delay the provider: the truth is generated from the
seed at each request. It reads only what grows, and makes changes on the provider's event loop, by `on_loop`.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
from pydantic import Field, ValidationError

from bridge_sandbox.provider.faults import FAULTS, Fault
from bridge_sandbox.provider.feed import NotRecorded, Provider
from bridge_sandbox.provider.model import Model
from bridge_sandbox.provider.recording import Speed, Step
from bridge_sandbox.provider.rest.app import Rest
from bridge_sandbox.provider.rest.faults import RestFault
from bridge_sandbox.provider.rest.tokens import SCOPES
from bridge_sandbox.provider.stream import Published
from bridge_sandbox.provider.world.catalogue import Unknown
from bridge_sandbox.provider.world.entities import Kind
from bridge_sandbox.provider.world.words import Language

JSON, NDJSON = "application/json", "application/x-ndjson"

_CHUNK = 32
"""Number of lines in one piece of an answer: each piece is a system call."""


class _Choices(Model):
    """The parameters of a request, from the query of a GET or the body of a POST. Here none."""


class _Interval(_Choices):
    """A part of the truth; times are Unix seconds."""

    since: Annotated[float, Field(allow_inf_nan=False)] = -math.inf
    until: Annotated[float, Field(allow_inf_nan=False)] = math.inf


class _Part(_Interval):
    """The same, with or without the messages."""

    bodies: bool = False


class _Token(_Choices):
    """The validity of a token, and its right if only one."""

    seconds: Annotated[float, Field(ge=1, le=1e9)] = 86_400
    scope: Literal["translations", "currencies"] | None = None


class _Removal(_Choices):
    """An entity of the REST side."""

    kind: Kind
    id: int


class _Renaming(_Removal):
    """Its new name, in one language or in all of them."""

    text: str
    language: Language | None = None


_Place = tuple[type[Model], Callable[[Any], object]]
"""The parameters and the handler; an iterator is returned as a line for each of its values."""


class Control:
    """The WSGI application for one provider with its REST side.

    `now` returns the provider's time. `inflict` injects a fault, `play` commands the recording and `stop`
    ends the stream; each returns the moment. `on_loop` calls a function on the provider's event loop and
    returns its result, or raises TimeoutError.
    """

    def __init__(
        self,
        provider: Provider,
        rest: Rest,
        *,
        now: Callable[[], float],
        inflict: Callable[[Fault], float],
        play: Callable[[Speed | Step], float],
        stop: Callable[[], float],
        on_loop: Callable[[Callable[[], Any]], Any],
    ) -> None:
        self._provider = provider
        self._rest = rest
        self._now = now
        self._on_loop = on_loop
        catalogue = rest.catalogue
        self._places: dict[str, _Place] = {
            "GET /": (_Choices, lambda _: self.places),
            "GET /state": (_Choices, lambda _: self._state()),
            "GET /attempts": (_Choices, lambda _: list(provider.attempts)),
            "GET /breaches": (_Choices, lambda _: list(provider.breaches)),
            "GET /connections": (_Choices, lambda _: self._connections()),
            "GET /truth": (_Part, self._truth),
            "GET /truth/count": (_Interval, self._count),
            "GET /api/truth": (_Choices, lambda _: catalogue.truth()),
            "GET /api/requests": (_Choices, lambda _: iter(on_loop(lambda: list(rest.requests)))),
            "GET /api/token": (_Token, self._token),
            **{f"POST /faults/{name}": (kind, self._changing(inflict)) for name, kind in FAULTS.items()},
            "POST /speed": (Speed, self._changing(play)),
            "POST /step": (Step, self._changing(play)),
            "POST /stop": (_Choices, self._changing(lambda _: stop())),
            "POST /api/faults": (RestFault, self._changing(rest.faults.inject)),
            "POST /api/clear": (_Choices, self._changing(lambda _: rest.faults.clear())),
            "POST /api/rename": (
                _Renaming,
                self._changing(lambda it: catalogue.rename(it.kind, it.id, it.text, it.language)),
            ),
            "POST /api/remove": (_Removal, self._changing(lambda it: catalogue.remove(it.kind, it.id))),
        }

    @property
    def places(self) -> dict[str, list[str]]:
        """Method and path → the parameters."""
        return {place: list(choices.model_fields) for place, (choices, _) in self._places.items()}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request (PEP 3333)."""
        status, result = self._answer(environ)
        lines = result if isinstance(result, Iterator) else iter([result])
        start_response(
            f"{status.value} {status.phrase}", [("Content-Type", NDJSON if lines is result else JSON)]
        )
        return _chunks(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)

    def _answer(self, environ: WSGIEnvironment) -> tuple[HTTPStatus, object]:
        method = environ["REQUEST_METHOD"]
        place = f"{method} {environ['PATH_INFO']}"
        if place not in self._places:
            return _error(HTTPStatus.NOT_FOUND, f"there is no {place} here; GET / lists what there is")
        choices, answer = self._places[place]
        try:
            if method == "GET":
                query = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
                chosen = choices.model_validate(dict(query))
            else:
                body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                chosen = choices.model_validate_json(body or b"{}")
            return HTTPStatus.OK, answer(chosen)
        except ValidationError as error:
            reasons = [
                f"{'.'.join(map(str, e['loc'])) or 'the body'}: {e['msg'].removeprefix('Value error, ')}"
                for e in error.errors()
            ]
            return _error(HTTPStatus.BAD_REQUEST, "; ".join(reasons))
        except (NotRecorded, Unknown) as error:
            return _error(HTTPStatus.NOT_FOUND, str(error))
        except TimeoutError:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, "the provider is too busy; ask again")

    def _changing(self, change: Callable[[Any], float | None]) -> Callable[[Model], dict[str, Any]]:
        """Return a handler that answers with the parameters and the moment, that of `change` or now."""

        def changed(chosen: Model) -> dict[str, Any]:
            at = self._on_loop(partial(change, chosen))
            return {"at": self._now() if at is None else at, **chosen.model_dump()}

        return changed

    def _truth(self, window: _Part) -> Iterator[dict[str, Any]]:
        messages = self._provider.log.read(*self._bounds(window))
        return (_row(message, bodies=window.bodies) for message in messages)

    def _count(self, interval: _Interval) -> dict[str, int]:
        since, until = self._bounds(interval)
        log = self._provider.log
        return {"count": max(0, log.count(until) - log.count(math.nextafter(since, -math.inf)))}

    def _bounds(self, interval: _Interval) -> tuple[float, float]:
        return max(interval.since, self._provider.log.stream.origin), min(interval.until, self._now())

    def _token(self, wanted: _Token) -> dict[str, Any]:
        scopes = SCOPES if wanted.scope is None else frozenset({wanted.scope})
        now = self._clock(self._now())
        return {"token": self._rest.tokens.mint(now, seconds=wanted.seconds, scopes=scopes)}

    def _connections(self) -> list[dict[str, Any]]:
        connection = self._provider.active
        if connection is None:
            return []
        attempt = asdict(self._provider.attempts[connection.number])
        return [{**attempt, "replaying": connection.is_replaying, "sent": connection.sent}]

    def _state(self) -> dict[str, Any]:
        log, now = self._provider.log, self._now()
        return {
            "now": now,
            "clock": self._clock(now),
            "origin": log.stream.origin,
            "ended": log.end if log.end < math.inf else None,
            "published": log.count(now),
            "clock_steps": [{"after": at, "ahead": ahead} for at, ahead in log.stream.clock.steps[1:]],
            "remembers_from": self._provider.edge(now),
            "remembers_seconds": self._provider.limits.max_age,
            "forgotten": [{"at": at, "before": before} for at, before in self._provider.forgotten],
            "faults": self._provider.lasting(now),
            "seed": log.stream.world.seed,
            **log.stream.state(),
            "limits_scale": self._provider.limits.scale,
        }

    def _clock(self, now: float) -> float:
        return self._provider.log.stream.clock.reading(now)


def _row(message: Published, *, bodies: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "at": message.at,
        "seq": message.seq,
        "betId": message.bet_id,
        "settlementVersion": message.version,
        "sha256": hashlib.sha256(message.body).hexdigest(),
    }
    if bodies:
        try:
            row["body"] = message.body.decode()
        except UnicodeDecodeError:
            row["base64"] = base64.b64encode(message.body).decode()
    return row


def _error(status: HTTPStatus, reason: str) -> tuple[HTTPStatus, object]:
    return status, {"error": reason}


def _chunks(lines: Iterator[bytes]) -> Iterator[bytes]:
    while chunk := b"".join(islice(lines, _CHUNK)):
        yield chunk
