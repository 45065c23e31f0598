"""The web application of `bridge run` and of the snapshot jobs: health and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from operator import attrgetter
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson
from prometheus_client import Metric

from bridge import clock as instant
from bridge.clock import Clock
from bridge.config import WebSettings
from bridge.log import get
from bridge.observability.exposition import exposition
from bridge.observability.health import Health, HealthStatus
from bridge.observability.http_server import WsgiServer

_TEXT = "text/plain; charset=utf-8"


_Answer = tuple[HTTPStatus, str, bytes]
"""Status, content type, body."""


def make_app(
    labels: Mapping[str, str],
    health: Callable[[float], Health],
    metrics: Callable[[float], Iterable[Metric]],
    clock: Clock = instant.now,
) -> WSGIApplication:
    """Make the application of a program.

    `/healthz` and `/readyz` answer 200 or 503 with JSON, `/metrics` answers in Prometheus' text format or
    as OpenMetrics with `labels` on every sample, `/` lists these paths. `health` and `metrics` get the
    current time in Unix seconds. They are called on the server's threads, once a request.
    """

    def probe(choose: Callable[[Health], HealthStatus]) -> Callable[[str], _Answer]:
        def answer(accept: str) -> _Answer:
            found = health(clock().wall)
            ok, reason = choose(found)
            body = orjson.dumps({"ok": ok, "reason": reason, **found.report})
            status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
            return status, "application/json", body

        return answer

    def scrape(accept: str) -> _Answer:
        body, content_type = exposition(metrics(clock().wall), labels, accept)
        return HTTPStatus.OK, content_type, body

    pages = {
        "/healthz": probe(attrgetter("healthy")),
        "/readyz": probe(attrgetter("ready")),
        "/metrics": scrape,
    }
    index = "".join(f"{path}\n" for path in pages).encode()
    pages["/"] = lambda accept: (HTTPStatus.OK, _TEXT, index)

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        method, page = environ["REQUEST_METHOD"], pages.get(environ.get("PATH_INFO") or "/")
        status, content_type, body = HTTPStatus.NOT_FOUND, _TEXT, b"not found; the paths are:\n" + index
        if page and method not in ("GET", "HEAD"):
            status, body = HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n"
        elif page:
            status, content_type, body = page(environ.get("HTTP_ACCEPT", ""))
        headers = [
            ("Content-Type", content_type),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Allow", "GET, HEAD"),
        ]
        start_response(f"{status.value} {status.phrase}", headers)
        return [] if method == "HEAD" else [body]

    return app


@contextmanager
def served(app: WSGIApplication, web: WebSettings) -> Iterator[None]:
    """Serve inside the block. If the port is taken, log a warning: publishing continues without metrics."""
    try:
        server = WsgiServer(app, web.host, web.port)
    except OSError as error:
        get().warning(
            "health and metrics unavailable: set web.port (BRIDGE_WEB__PORT) to a free port",
            host=web.host,
            port=web.port,
            reason=str(error),
        )
        yield
        return
    get().info("health and metrics", address=server.url)
    try:
        yield
    finally:
        server.close()
