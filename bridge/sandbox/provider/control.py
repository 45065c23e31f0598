"""The control endpoint: what is to go wrong at the provider, and the truth about it, as JSON over HTTP.

A WSGI application, so that it is served from threads that hold up nobody: the truth, which is made again
from the seed at each request, least of all. What it reads only ever grows; what it changes it does where
the provider lives, by `on_loop`.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bridge.sandbox.provider.faults import FAULTS, Fault
from bridge.sandbox.provider.feed import Provider
from bridge.sandbox.provider.rest.app import Rest
from bridge.sandbox.provider.rest.faults import RestFault
from bridge.sandbox.provider.rest.tokens import SCOPES
from bridge.sandbox.provider.stream import Published
from bridge.sandbox.provider.world.catalogue import Kind, Unknown
from bridge.sandbox.provider.world.words import Language

JSON, NDJSON = "application/json", "application/x-ndjson"

_CHUNK = 64 * 1024
"""Bytes of the truth that are sent at a time."""


class Problem(Exception):
    """A request that cannot be answered: its status, and what is wrong with it."""

    def __init__(self, status: HTTPStatus, reason: str, *allowed: str) -> None:
        super().__init__(reason)
        self.status = status
        self.allowed = allowed
        """The methods there are, where it was another one."""


class _Choices(BaseModel):
    """What may be chosen by whoever asks, here nothing: query parameters of a GET, the body of a POST."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class _Window(_Choices):
    """Which part of the truth; the times are Unix seconds."""

    since: Annotated[float, Field(allow_inf_nan=False)] = -math.inf
    until: Annotated[float, Field(allow_inf_nan=False)] = math.inf
    bodies: bool = False


class _Token(_Choices):
    """How long a token is valid, and whether it gives one right only."""

    seconds: Annotated[float, Field(ge=1, le=1e9)] = 86_400
    scope: Literal["translations", "currencies"] | None = None


class _Removal(_Choices):
    """Something that the REST side knows."""

    kind: Kind
    id: int


class _Renaming(_Removal):
    """Its new name, in one language or in all of them."""

    text: str
    language: Language | None = None


_Model = TypeVar("_Model", bound=BaseModel)
_Place = tuple[type[BaseModel], Callable[[Any], object]]
"""What may be chosen, and what answers; an iterator is answered with a line for each of its values."""


class Control:
    """The WSGI application for one provider with its REST side.

    `now` gives the provider's time. `inflict` lets a fault happen and `stop` ends the stream; both return
    when they did. `on_loop` calls something where the provider lives and gives back what that returns or
    raises, or raises TimeoutError. `facts` is what `/state` tells beside the rest.
    """

    def __init__(
        self,
        provider: Provider,
        rest: Rest,
        *,
        now: Callable[[], float],
        inflict: Callable[[Fault], float],
        stop: Callable[[], float],
        on_loop: Callable[[Callable[[], Any]], Any],
        facts: dict[str, Any],
    ) -> None:
        self._provider = provider
        self._rest = rest
        self._now = now
        self._on_loop = on_loop
        self._facts = facts
        faults: dict[str, _Place] = {
            f"/faults/{name}": (kind, self._changing(inflict)) for name, kind in FAULTS.items()
        }
        catalogue = rest.catalogue
        self._places: dict[str, dict[str, _Place]] = {
            "GET": {
                "/": (_Choices, lambda _: self.places),
                "/state": (_Choices, lambda _: self._state()),
                "/attempts": (_Choices, lambda _: list(provider.attempts)),
                "/breaches": (_Choices, lambda _: list(provider.breaches)),
                "/connections": (_Choices, lambda _: self._connections()),
                "/truth": (_Window, self._truth),
                "/api/truth": (_Choices, lambda _: catalogue.truth()),
                "/api/requests": (_Choices, lambda _: iter(on_loop(lambda: list(rest.requests)))),
                "/api/token": (_Token, self._token),
            },
            "POST": faults
            | {
                "/stop": (_Choices, self._changing(lambda _: stop())),
                "/api/faults": (RestFault, self._changing(rest.inject)),
                "/api/clear": (_Choices, self._changing(lambda _: rest.faults.clear())),
                "/api/rename": (
                    _Renaming,
                    self._changing(lambda it: catalogue.rename(it.kind, it.id, it.text, it.language)),
                ),
                "/api/remove": (_Removal, self._changing(lambda it: catalogue.remove(it.kind, it.id))),
            },
        }

    @property
    def places(self) -> dict[str, dict[str, list[str]]]:
        """Method → path → what may be chosen there."""
        return {
            method: {path: list(choices.model_fields) for path, (choices, _) in places.items()}
            for method, places in self._places.items()
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request (PEP 3333)."""
        try:
            told = self._answer(environ)
        except Problem as problem:
            headers = [("Content-Type", JSON)]
            if problem.allowed:
                headers.append(("Allow", ", ".join(problem.allowed)))
            start_response(f"{problem.status.value} {problem.status.phrase}", headers)
            return [_line({"error": str(problem)})]
        if isinstance(told, Iterator):
            start_response("200 OK", [("Content-Type", NDJSON)])
            return _chunks(map(_line, told))
        start_response("200 OK", [("Content-Type", JSON)])
        return [_line(told)]

    def _answer(self, environ: WSGIEnvironment) -> object:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if path not in self._places.get(method, {}):
            allowed = [other for other, places in self._places.items() if path in places]
            if allowed:
                raise Problem(
                    HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes {allowed[0]} and nothing else", *allowed
                )
            raise Problem(HTTPStatus.NOT_FOUND, f"there is no {path} here; GET / lists what there is")
        choices, answer = self._places[method][path]
        chosen = _valid(choices, _query(environ) if method == "GET" else _body(environ))
        try:
            return answer(chosen)
        except Unknown as error:
            raise Problem(HTTPStatus.NOT_FOUND, str(error)) from None
        except TimeoutError:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "the provider is too busy; ask again") from None

    def _changing(self, change: Callable[[Any], float | None]) -> Callable[[BaseModel], dict[str, Any]]:
        """Answers with what was understood and when it was done, as `change` says or now."""

        def changed(chosen: BaseModel) -> dict[str, Any]:
            at = self._on_loop(partial(change, chosen))
            return {"at": self._now() if at is None else at, **chosen.model_dump()}

        return changed

    def _truth(self, window: _Window) -> Iterator[dict[str, Any]]:
        log = self._provider.log
        since, until = max(window.since, log.stream.origin), min(window.until, self._now())
        return (_told(message, bodies=window.bodies) for message in log.read(since, until))

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
            "remembers_from": self._provider.edge(now),
            "faults": self._provider.lasting(now),
            **self._facts,
        }

    def _clock(self, now: float) -> float:
        return self._provider.log.stream.clock.reading(now)


def _told(message: Published, *, bodies: bool) -> dict[str, Any]:
    told: dict[str, Any] = {
        "at": message.at,
        "seq": message.seq,
        "betId": message.bet_id,
        "settlementVersion": message.version,
        "sha256": hashlib.sha256(message.body).hexdigest(),
    }
    if bodies:
        try:
            told["body"] = message.body.decode()
        except UnicodeDecodeError:
            told["base64"] = base64.b64encode(message.body).decode()
    return told


def _query(environ: WSGIEnvironment) -> dict[str, str]:
    found = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    return {name: values[-1] for name, values in found.items()}


def _body(environ: WSGIEnvironment) -> object:
    length = environ.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal():
        raise Problem(HTTPStatus.BAD_REQUEST, "Content-Length must be a number")
    try:
        return orjson.loads(environ["wsgi.input"].read(int(length)) or b"{}")
    except orjson.JSONDecodeError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None


def _valid(choices: type[_Model], given: object) -> _Model:
    try:
        return choices.model_validate(given)
    except ValidationError as error:
        reasons = [
            f"{'.'.join(map(str, e['loc'])) or 'the body'}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        ]
        raise Problem(HTTPStatus.BAD_REQUEST, "; ".join(reasons)) from None


def _line(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces: each piece is a system call."""
    held, size = [], 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)
