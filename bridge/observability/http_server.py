"""A WSGI application served from a thread of its own, so that it never waits for what it tells about.

The standard library's server is enough for a scraper, a probe and a person with curl: one request a
connection (HTTP/1.0), each in a daemon thread. It writes no access log. What it lacks is here: a bound on
connections, on a request's size and on its time, so that no client takes the memory, the descriptors or
the processor of the process that serves it.
"""

from __future__ import annotations

import errno
import io
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import LineTooLong
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import WSGIApplication

from bridge.log import get

_HEAD_BYTES = 16 * 1024
_CONNECTIONS = 32
_REQUEST_SECONDS = 10.0
_IDLE_SECONDS = 60
"""A client that does not read the answer for so long is let go."""
_LET_GO_SECONDS = 1.0
"""So long a connection that is let go may take to close, before the new one is closed instead."""
_REST_SECONDS = 1.0
"""After an `accept` for which descriptors or memory were lacking: the next would fail as well, at once."""
_LACKING = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_POLL_SECONDS = 0.1


class WsgiServer:
    """Serves `app` on `host`:`port` until `close`; port 0 is any free one.

    A request has 16 KiB for its head, `body_bytes` for its body, and `request_seconds` to come whole. Of
    `connections` at most (32, or an eighth of the descriptors that the process may have) the one that has
    waited longest for its request is let go for a new one; where all are being answered, that is closed.

    Raises OSError, with the address in its text, when it cannot listen there.
    """

    def __init__(
        self,
        app: WSGIApplication,
        host: str,
        port: int,
        *,
        body_bytes: int = 0,
        request_seconds: float = _REQUEST_SECONDS,
        connections: int | None = None,
    ) -> None:
        listening = _Server6 if ":" in host else _Server
        try:
            self._server = listening((host, port), _Handler)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
        self._server.body_bytes, self._server.request_seconds = body_bytes, request_seconds
        self._server.most = connections or _affordable()
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


def _affordable() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(_CONNECTIONS, soft // 8))


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    allow_reuse_port = False  # some Pythons share a taken port where one would rather be told
    request_queue_size = 1024  # cheap: they take no descriptor while they wait here
    body_bytes: int
    request_seconds: float
    most: int

    def __init__(self, *args: Any) -> None:
        self._open: set[Any] = set()
        self._waiting: dict[Any, None] = {}
        """Those of them whose request is not there yet, in the order in which they came."""
        self._closed = threading.Condition()
        super().__init__(*args)

    def server_bind(self) -> None:
        # The library's own looks up the host's full name, which can take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port, *_ = self.socket.getsockname()
        self.setup_environ()

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _LACKING:
                time.sleep(_REST_SECONDS)
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for it, if need be that of another."""
        with self._closed:
            if len(self._open) >= self.most and self._waiting:
                longest = next(iter(self._waiting))
                del self._waiting[longest]
                with suppress(OSError):  # gone by itself
                    longest.shutdown(socket.SHUT_RDWR)  # its thread sees the end, and closes it
                self._closed.wait_for(lambda: len(self._open) < self.most, _LET_GO_SECONDS)
            if len(self._open) >= self.most:
                return False
            self._open.add(request)
            self._waiting[request] = None
            return True

    def begin_answer(self, request: Any) -> None:
        """The request is there: from now on the connection is not let go for another."""
        with self._closed:
            self._waiting.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        self.begin_answer(request)  # first: the descriptor may be another's as soon as it is closed
        super().shutdown_request(request)
        with self._closed:
            self._open.discard(request)
            self._closed.notify()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle of its request is no event."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Incoming(io.RawIOBase):
    """What a client sends, as far as it is let: `left` bytes, and until the deadline."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + seconds
        self.left = _HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        if not self.left:
            raise LineTooLong("head")  # for which the library answers 431
        self._connection.settimeout(seconds)
        size = self._connection.recv_into(memoryview(buffer)[: self.left])
        if not size:
            raise ConnectionAbortedError  # or the library would take half a request for a whole one
        self.left -= size
        return size


class _Handler(WSGIRequestHandler):
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._incoming = _Incoming(self.connection, self.server.request_seconds)
        self.rfile = io.BufferedReader(self._incoming)

    def parse_request(self) -> bool:
        """The head, by the library, and the body: the application is called when all of it is there."""
        if not super().parse_request():
            return False
        length = self.headers.get("Content-Length", "")
        size = int(length) if length.isdecimal() else 0
        if size > self.server.body_bytes:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return False
        self._incoming.left = size
        self.rfile = io.BytesIO(self.rfile.read(size))
        self.server.begin_answer(self.connection)
        self.connection.settimeout(_IDLE_SECONDS)
        return True

    def log_message(self, *_: object) -> None:
        """No access log."""
