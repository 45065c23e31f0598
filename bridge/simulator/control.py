"""The control endpoint: faults to inflict on the provider, and the truth about it, as JSON over HTTP.

A WSGI application, so that it is served from threads that hold up nobody: the truth, which is made again
from the seed at each request, least of all. What it reads only ever grows; what it changes it hands to
`inflict`, which is to do it where the provider lives.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bridge.simulator.faults import FAULTS, Fault
from bridge.simulator.provider import Provider
from bridge.simulator.stream import Published

JSON, NDJSON = "application/json", "application/x-ndjson"

_CHUNK = 64 * 1024
"""Bytes of the truth that are sent at a time."""


_Model = TypeVar("_Model", bound=BaseModel)


class Problem(Exception):
    """A request that cannot be answered: its status, and what is wrong with it."""

    def __init__(self, status: HTTPStatus, reason: str, *allowed: str) -> None:
        super().__init__(reason)
        self.status = status
        self.allowed = allowed
        """The methods there are, where it was another one."""


class _Window(BaseModel):
    """Query parameters of the truth; the times are Unix seconds."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    since: Annotated[float, Field(allow_inf_nan=False)] = -math.inf
    until: Annotated[float, Field(allow_inf_nan=False)] = math.inf
    bodies: bool = False


class Control:
    """The WSGI application for one provider.

    `now` gives the provider's time, and `inflict` lets a fault happen and returns when it did; both are
    called from any thread.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        now: Callable[[], float],
        inflict: Callable[[Fault], float],
        facts: dict[str, Any],
    ) -> None:
        self._provider = provider
        self._now = now
        self._inflict = inflict
        self._facts = facts
        """What `/state` tells beside the rest."""
        self._pages: dict[str, Callable[[], Any]] = {
            "/attempts": lambda: list(provider.attempts),
            "/breaches": lambda: list(provider.breaches),
            "/connections": self._connections,
            "/state": self._state,
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request (PEP 3333)."""
        try:
            return self._answer(environ, start_response)
        except Problem as problem:
            headers = [("Content-Type", JSON)]
            if problem.allowed:
                headers.append(("Allow", ", ".join(problem.allowed)))
            start_response(f"{problem.status.value} {problem.status.phrase}", headers)
            return [_line({"error": str(problem)})]

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path.startswith("/faults/"):
            _only(environ, "POST")
            answer: Iterable[bytes] = [_line(self._fault(path.removeprefix("/faults/"), environ))]
        elif path == "/truth":
            _only(environ, "GET")
            window = _valid(_Window, _query(environ))
            start_response("200 OK", [("Content-Type", NDJSON)])
            return _chunks(self._truth(window))
        elif path in self._pages:
            _only(environ, "GET")
            answer = [_line(self._pages[path]())]
        else:
            places = ", ".join(["/truth", *self._pages, "/faults/<name>"])
            raise Problem(HTTPStatus.NOT_FOUND, f"there is no {path} here, only {places}")
        start_response("200 OK", [("Content-Type", JSON)])
        return answer

    def _fault(self, name: str, environ: WSGIEnvironment) -> dict[str, Any]:
        if name not in FAULTS:
            raise Problem(HTTPStatus.NOT_FOUND, f"there is no fault {name!r}, only {', '.join(FAULTS)}")
        length = environ.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal():
            raise Problem(HTTPStatus.BAD_REQUEST, "Content-Length must be a number")
        body = environ["wsgi.input"].read(int(length))
        try:
            given = orjson.loads(body or b"{}")
        except orjson.JSONDecodeError as error:
            raise Problem(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None
        fault = _valid(FAULTS[name], given)
        return {"at": self._inflict(fault), "fault": name, **fault.model_dump()}

    def _truth(self, window: _Window) -> Iterator[bytes]:
        log = self._provider.log
        since, until = max(window.since, log.stream.origin), min(window.until, self._now())
        for message in log.read(since, until):
            yield _line(_told(message, bodies=window.bodies))

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
            "clock": log.stream.clock.reading(now),
            "origin": log.stream.origin,
            "ended": log.end if log.end < math.inf else None,
            "published": log.count(now),
            "remembers_from": self._provider.edge(now),
            "faults": self._provider.lasting(now),
            **self._facts,
        }


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


def _only(environ: WSGIEnvironment, method: str) -> None:
    if environ["REQUEST_METHOD"] != method:
        raise Problem(
            HTTPStatus.METHOD_NOT_ALLOWED, f"{environ['PATH_INFO']} takes {method} and nothing else", method
        )


def _query(environ: WSGIEnvironment) -> dict[str, str]:
    found = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    return {name: values[-1] for name, values in found.items()}


def _valid(model: type[_Model], given: object) -> _Model:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, e['loc'])) or 'the body'}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        ]
        raise Problem(HTTPStatus.BAD_REQUEST, "; ".join(wrong)) from None


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
