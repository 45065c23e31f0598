"""Requests to a WSGI application, as a server makes them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple
from wsgiref.types import WSGIApplication
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator


class Response(NamedTuple):
    """What an application answers."""

    status: str
    headers: dict[str, str]
    body: bytes


def ask(
    app: WSGIApplication, target: str, method: str = "GET", body: bytes = b"", **environ: str
) -> Response:
    """Make one request; both sides are held to the rules of WSGI."""
    path, _, query = target.partition("?")
    request: dict[str, Any] = {"SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": query, **environ}
    request |= {"REQUEST_METHOD": method, "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
    setup_testing_defaults(request)
    started: list[Any] = []

    def start_response(*given: Any) -> Callable[[bytes], object]:
        started.extend(given)
        return io.BytesIO().write

    answer = validator(app)(request, start_response)
    content = b"".join(answer)
    answer.close()  # type: ignore[attr-defined]  # the validator insists on it
    return Response(started[0], dict(started[1]), content)
