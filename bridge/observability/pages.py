"""Pages over HTTP, as a WSGI application: whatever they show, they compute when they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson

TEXT = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """What a page answers with."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


Page = Callable[[WSGIEnvironment], Answer]
"""Called on the server's threads, once a request."""


def well_or_not(ok: bool, report: Mapping[str, Any]) -> Answer:
    """200 or 503, with JSON that says why."""
    status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, "application/json", orjson.dumps({"ok": ok, **report}))


def application(pages: Mapping[str, Page]) -> WSGIApplication:
    """Serves pages by their paths; `/` lists them."""

    def index(environ: WSGIEnvironment) -> Answer:
        return Answer(HTTPStatus.OK, TEXT, "".join(f"{path}\n" for path in pages).encode())

    served: dict[str, Page] = {"/": index, **pages}

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = _respond(served, environ)
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            *answer.headers,
        ]
        start_response(f"{answer.status.value} {answer.status.phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [answer.body]

    return app


def _respond(pages: Mapping[str, Page], environ: WSGIEnvironment) -> Answer:
    page = pages.get(environ.get("PATH_INFO") or "/")
    if page is None:
        return Answer(HTTPStatus.NOT_FOUND, TEXT, f"not here; there is {' '.join(pages)}\n".encode())
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
        return Answer(HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"only GET and HEAD\n", (("Allow", "GET, HEAD"),))
    return page(environ)
