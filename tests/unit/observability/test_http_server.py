"""The HTTP server on a loopback port."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest

from bridge.observability.http_server import WsgiServer


def echo(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}".encode()]


@contextmanager
def serving(app: WSGIApplication, host: str = "127.0.0.1") -> Iterator[WsgiServer]:
    with closing(WsgiServer(app, host, 0)) as server:
        yield server


def get(url: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as response:
        body: bytes = response.read()
    return body


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_application_answers_at_its_address(host: str) -> None:
    """On a free port, over IPv4 and IPv6."""
    with serving(echo, host) as server:
        assert get(f"{server.url}/some/where") == b"GET /some/where"


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither an access log, nor a traceback for a client that disconnects during its request."""
    with serving(echo) as server:
        get(server.url)
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as client:
            client.sendall(b"GET / HT")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        get(server.url)
    assert capfd.readouterr() == ("", "")


def test_the_error_for_a_taken_port_names_the_address() -> None:
    with serving(echo) as server, pytest.raises(OSError, match=server.url.removeprefix("http://")):
        WsgiServer(echo, "127.0.0.1", urlsplit(server.url).port or 0)


def test_a_slow_answer_does_not_delay_another() -> None:
    entered, release = threading.Event(), threading.Event()

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/slow":
            entered.set()
            release.wait(30)
        return echo(environ, start_response)

    with serving(app) as server:
        slow = threading.Thread(target=get, args=(f"{server.url}/slow",))
        slow.start()
        assert entered.wait(5)
        try:
            assert get(f"{server.url}/fast") == b"GET /fast"
        finally:
            release.set()
        slow.join(5)
        assert not slow.is_alive()


def test_close_frees_the_port_and_may_be_repeated() -> None:
    server = WsgiServer(echo, "127.0.0.1", 0)
    port = urlsplit(server.url).port or 0
    server.close()
    server.close()
    with closing(WsgiServer(echo, "127.0.0.1", port)) as again:
        assert get(again.url) == b"GET /"
