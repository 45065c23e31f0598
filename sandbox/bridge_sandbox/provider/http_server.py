"""The server of the control endpoint: that of the standard library, in threads, without any bounds."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import WSGIApplication


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write no access log."""


class WsgiServer(ThreadingMixIn, WSGIServer):
    """Serves `app` until `close`. Raises OSError, with the address in its text, if it cannot listen there."""

    daemon_threads = True
    allow_reuse_port = False  # some Pythons would share a taken port instead of failing

    def __init__(self, app: WSGIApplication, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
        self.set_app(app)
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def close(self) -> None:
        """Stop listening. Threads finish their answers."""
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without looking up the host's full name, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port, *_ = self.socket.getsockname()
        self.setup_environ()

    def handle_error(self, *_: object) -> None:
        """Ignore a client that disconnects during its request."""


def base_url(scheme: str, host: str, port: int) -> str:
    """Return the base address of a server, without a trailing slash."""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def taken(port: int) -> str:
    """Say that a port is taken and, where psutil is installed and may know, by which process."""
    with suppress(ImportError, RuntimeError, OSError, SyntaxError):
        import psutil

        with suppress(psutil.Error):
            for it in psutil.net_connections("tcp"):
                if it.pid and it.status == psutil.CONN_LISTEN and it.laddr.port == port:
                    return f"port {port} is taken by {psutil.Process(it.pid).name()} (pid {it.pid})"
    return f"port {port} is taken"
