"""The web application of `bridge run` and of the snapshot jobs: health, metrics, and pages that they add."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson
from prometheus_client import Metric

from bridge import clock as instant
from bridge.clock import Clock
from bridge.config import WebSettings
from bridge.log import get
from bridge.masking import concealed
from bridge.observability.exposition import exposition
from bridge.observability.health import Health, HealthStatus
from bridge.observability.hosts import is_ours
from bridge.observability.http_server import WsgiServer

_TEXT = "text/plain; charset=utf-8"
_HEADERS = [
    ("Allow", "GET, HEAD"),
    ("Cache-Control", "no-store"),
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
]
"""Headers of every answer: a browser runs, loads and embeds nothing but what this server has."""
_NOT_OURS = (
    b"this server has another name: use its address, or add the name to web.hosts (BRIDGE_WEB__HOSTS)\n"
)


class HttpAnswer(NamedTuple):
    """What a path answers: a body, or pieces of one that has no end yet."""

    status: HTTPStatus
    content_type: str
    body: bytes | Iterator[bytes]


RETRY_SECONDS = 2.0
COMPUTING = threading.Lock()
"""Held while an answer, or a piece of one, is computed: one thread at most competes with the event loop."""
Page = Callable[[str], HttpAnswer]
"""Answers a request with this `Accept` header; called on a thread of the server."""


def make_app(
    labels: Mapping[str, str],
    health: Callable[[float], Health],
    metrics: Callable[[float], Iterable[Metric]],
    web: WebSettings,
    clock: Clock = instant.now,
    more: Mapping[str, Page] = MappingProxyType({}),
) -> WSGIApplication:
    """Make the application of a program.

    `/healthz` and `/readyz` answer 200 or 503 with JSON, `/metrics` answers in Prometheus' text format or
    as OpenMetrics with `labels` on every sample, `/` lists these paths unless `more` has a page for it.
    `health` and `metrics` get the current time in Unix seconds. They are called on the server's threads, once
    a request. A request under another name than `web` allows is answered 421.
    """

    def probe(choose: Callable[[Health], HealthStatus]) -> Page:
        def answer(accept: str) -> HttpAnswer:
            found = health(clock().wall)
            ok, reason = choose(found)
            # A reason may quote what a provider has answered, and that the request with its token.
            body = orjson.dumps({"ok": ok, "reason": concealed(reason), **found.report})
            status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
            return HttpAnswer(status, "application/json", body)

        return answer

    def scrape(accept: str) -> HttpAnswer:
        body, content_type = exposition(metrics(clock().wall), labels, accept)
        return HttpAnswer(HTTPStatus.OK, content_type, body)

    pages: dict[str, Page] = {
        "/healthz": probe(attrgetter("healthy")),
        "/readyz": probe(attrgetter("ready")),
        "/metrics": scrape,
    }
    index = "".join(f"{path}\n" for path in pages).encode()
    pages = {"/": lambda accept: HttpAnswer(HTTPStatus.OK, _TEXT, index), **pages, **more}
    names = {name.lower() for name in ("localhost", socket.gethostname(), web.host, *web.hosts)}

    def answer(environ: WSGIEnvironment) -> HttpAnswer:
        host, page = environ.get("HTTP_HOST"), pages.get(environ.get("PATH_INFO") or "/")
        if not is_ours(host, names):
            return HttpAnswer(HTTPStatus.MISDIRECTED_REQUEST, _TEXT, _NOT_OURS)
        if page is None:
            return HttpAnswer(HTTPStatus.NOT_FOUND, _TEXT, b"not found; the paths are:\n" + index)
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return HttpAnswer(HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"only GET and HEAD\n")
        with COMPUTING:
            return page(environ.get("HTTP_ACCEPT", ""))

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        status, content_type, body = answer(environ)
        length = [("Content-Length", str(len(body)))] if isinstance(body, bytes) else []
        headers = [("Content-Type", content_type), *length, *_HEADERS]
        start_response(f"{status.value} {status.phrase}", headers)
        if environ["REQUEST_METHOD"] == "HEAD":
            return []
        return [body] if isinstance(body, bytes) else body

    return app


@contextmanager
def served(app: WSGIApplication, web: WebSettings) -> Iterator[None]:
    """Serve inside the block; while the address is taken, try again: publishing does not wait for it."""
    over, servers = threading.Event(), list[WsgiServer]()

    def problem() -> str:
        try:
            servers.append(WsgiServer(app, web.host, web.port))
        except OSError as error:
            return str(error)
        get().info("health and metrics", address=servers[0].url)
        return ""

    def try_again() -> None:
        while not over.wait(RETRY_SECONDS) and problem():
            pass

    trying = threading.Thread(target=try_again, name="web", daemon=True)
    if reason := problem():
        what = "health and metrics unavailable until the address is free; or set web.port (BRIDGE_WEB__PORT)"
        get().warning(what, reason=reason)
        trying.start()
    try:
        yield
    finally:
        over.set()
        if reason:
            trying.join()
        for server in servers:
            server.close()
