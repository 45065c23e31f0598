"""Serves a WSGI application from its own thread, so that a busy event loop does not delay an answer.

The server is wsgiref's, as prometheus_client's is: HTTP/1.0, each request in a daemon thread, no access log.
This module adds what both lack (decision 0013): bounds on connections and on the size and time of a request,
so that no client exhausts the memory, descriptors or processor time of the process.
"""

from __future__ import annotations

import errno
import io
import resource
import socket
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.client import LineTooLong
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.handlers import SimpleHandler
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import WSGIApplication

_SERVER = "bridge"
"""The header `Server`, without versions."""
_HEAD_BYTES = 16 * 1024
_CONNECTIONS = 32
_REQUEST_SECONDS = 10.0
_WRITE_SECONDS = 60
"""Close a connection whose client does not read the answer for this time."""
_CLOSE_SECONDS = 1.0
"""Close a new connection if as many as may be open are being closed for this time."""
_PAUSE_SECONDS = 1.0
"""Pause after an `accept` without descriptors or memory: the next would fail at once as well."""
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_POLL_SECONDS = 0.1


class WsgiServer(ThreadingMixIn, WSGIServer):
    """Serves `app` on `host`:`port` until `close`; port 0 is any free one, `::` all of IPv6 and IPv4.

    A request is limited to 16 KiB of head, no body, and `request_seconds` until it is complete.
    At most `connections` are open: 32, or an eighth of the process's descriptors. A further one evicts the
    one that has waited longest for its request, or is closed itself if all are being answered. As many again
    may be closing, so that a flood of connections does not delay a request by a thread's wake-up for each.

    Raises OSError, with the address in its text, if it cannot listen there.
    """

    daemon_threads = True
    allow_reuse_port = False  # some Pythons would share a taken port instead of failing
    request_queue_size = 1024  # a connection in the queue takes no descriptor

    def __init__(
        self,
        app: WSGIApplication,
        host: str,
        port: int,
        *,
        request_seconds: float = _REQUEST_SECONDS,
        connections: int | None = None,
    ) -> None:
        self.request_seconds = request_seconds
        self._max_connections = connections or max_connections()
        self._open: set[Any] = set()
        self._waiting: dict[Any, None] = {}
        """Open connections without a complete request, oldest first."""
        self._closing: set[Any] = set()
        self._closed = threading.Condition()
        if host == "::" and not socket.has_dualstack_ipv6():
            host = "0.0.0.0"  # noqa: S104  # as asked
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
        self.set_app(app)
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_POLL_SECONDS,), name=f"http-{port}", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Base address without a trailing slash."""
        host, port = self.server_name, self.server_port
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        """Stop listening. Threads finish their answers. May be called again."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without looking up the host's full name, as WSGIServer does: that can take seconds."""
        if self.server_address[0] == "::":
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)
        self.server_name, self.server_port, *_ = self.socket.getsockname()
        self.setup_environ()

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection; pause if there are no resources for it."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _EXHAUSTED:
                time.sleep(_PAUSE_SECONDS)
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether there is room for a connection, after evicting another if necessary."""
        with self._closed:
            if not self._closed.wait_for(lambda: len(self._closing) < self._max_connections, _CLOSE_SECONDS):
                return False
            if len(self._open) >= self._max_connections:
                if not self._waiting:
                    return False
                oldest = next(iter(self._waiting))
                self._begin_closing(oldest)
                with suppress(OSError):  # it is already closed
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread sees the end and closes it
            self._open.add(request)
            self._waiting[request] = None
            return True

    def begin_answer(self, request: Any) -> None:
        """Protect a connection from eviction: its request is complete."""
        with self._closed:
            self._waiting.pop(request, None)

    def _begin_closing(self, request: Any) -> None:
        """Make room for another connection; call with the lock held, while the descriptor is this one's."""
        self._waiting.pop(request, None)
        self._open.discard(request)
        self._closing.add(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._closed:
            self._begin_closing(request)
        super().shutdown_request(request)
        with self._closed:
            self._closing.discard(request)
            self._closed.notify()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnects during its request."""


def max_connections() -> int:
    """Return how many connections of this process's servers may be open each."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(_CONNECTIONS, soft // 8))


class _Incoming(io.RawIOBase):
    """The bytes of a client, at most `left` and only until the deadline."""

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
            raise LineTooLong("head")  # answered with 431 by the base class
        self._connection.settimeout(seconds)
        size = self._connection.recv_into(memoryview(buffer)[: self.left])
        if not size:
            raise ConnectionAbortedError  # the base class would take half a request for a whole one
        self.left -= size
        return size


class _Answer(SimpleHandler):
    server_software = _SERVER

    def log_exception(self, exc_info: Any) -> None:
        """Print the traceback of a mistake of ours, not of a client that does not read."""
        if not isinstance(exc_info[1], TimeoutError):
            super().log_exception(exc_info)


class _Handler(WSGIRequestHandler):
    server: WsgiServer

    def version_string(self) -> str:
        """Return the value of the header `Server` in the errors of the base class."""
        return _SERVER

    def handle(self) -> None:
        """Answer one request as the base class does, which would tell its version and Python's."""
        self.raw_requestline = self.rfile.readline(_HEAD_BYTES)
        if self.parse_request():
            app, body, environ = self.server.get_app(), self.rfile, self.get_environ()
            assert app is not None
            _Answer(body, self.wfile, self.get_stderr(), environ).run(app)  # type: ignore[arg-type]

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Incoming(self.connection, self.server.request_seconds))

    def parse_request(self) -> bool:
        """Read the head before the application is called, and refuse a body."""
        if not super().parse_request():
            return False
        if self.headers.get("Content-Length", "0") != "0":
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return False
        self.rfile = io.BytesIO()
        self.server.begin_answer(self.connection)
        self.connection.settimeout(_WRITE_SECONDS)
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer in plain text what the application never sees: the base class would quote it in a page."""
        body = f"{HTTPStatus(code).phrase}\n".encode()
        self.request_version = "HTTP/1.0"  # one that is not understood would get no headers
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no access log."""
