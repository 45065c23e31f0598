"""A WSGI application served from a thread of its own, so that it never waits for what it tells about.

The standard library's server is enough for a scraper, a probe and a person with curl: one request a
connection (HTTP/1.0), each in a daemon thread. It writes no access log.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import WSGIApplication

from bridge.log import get

_IDLE_SECONDS = 60
"""A client that neither sends its request nor reads the answer for so long is let go."""
_POLL_SECONDS = 0.1


class WsgiServer:
    """Serves `app` on `host`:`port` until `close`; port 0 is any free one.

    Raises OSError, with the address in its text, when it cannot listen there.
    """

    def __init__(self, app: WSGIApplication, host: str, port: int) -> None:
        listening = _Server6 if ":" in host else _Server
        try:
            self._server = listening((host, port), _Handler)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
        self._server.set_app(app)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name=f"http-{port}", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The base address, without a slash at its end."""
        host, port = self._server.server_name, self._server.server_port
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        """Stop listening. Answers under way go on in their threads. May be called again."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def served(app: WSGIApplication, host: str, port: int) -> Iterator[None]:
    """Serve meanwhile; where the port is taken, say so and go on: nobody stops publishing for that."""
    try:
        server = WsgiServer(app, host, port)
    except OSError as error:
        get().warning(
            "health and metrics are not served: set web.port (BRIDGE_WEB__PORT) to a free port",
            host=host,
            port=port,
            reason=str(error),
        )
        yield
        return
    get().info("health and metrics", address=server.url)
    try:
        yield
    finally:
        server.close()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    allow_reuse_port = False  # some Pythons share a taken port where one would rather be told
    request_queue_size = 64

    def server_bind(self) -> None:
        # The library's own looks up the host's full name, which can take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port, *_ = self.socket.getsockname()
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle of its request is no event."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = _IDLE_SECONDS

    def log_message(self, *_: object) -> None:
        """No access log."""
