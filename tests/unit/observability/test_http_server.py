"""The HTTP server on a loopback port."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
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
    with opener.open(url, timeout=60) as response:
        body: bytes = response.read()
    return body


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_application_answers_at_its_address(host: str) -> None:
    with serving(echo, host) as server, closing(connected(server.url)) as client:
        assert get(f"{server.url}/some/where") == b"GET /some/where"
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b"\r\nServer: bridge\r\n" in rest(client)


@pytest.mark.parametrize("has_both", [True, False])
def test_all_addresses_are_those_of_both_kinds(has_both: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_both:
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with serving(echo, "::") as server:
        assert urlsplit(server.url).hostname == ("::" if has_both else "0.0.0.0")
        for host in ["127.0.0.1", "[::1]"][: 1 + has_both]:
            assert get(f"http://{host}:{server.server_port}/") == b"GET /"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/9.9\r\n\r\n", "505 HTTP Version Not Supported"),
        (b"GET <script> / HTTP/1.0\r\n\r\n", "400 Bad Request"),
        (b"POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\n", "413 "),
        (b"POST / HTTP/1.0\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n", "413 "),
        (b"POST / HTTP/1.0\r\nContent-Length: " + b"0" * 20 + b"\r\n\r\n", "413 "),
        (b"GET / HTTP/1.0\r\nX: " + b"x" * (16 * 1024 - 19), "431 "),
    ],
)
def test_what_never_reaches_the_application_is_answered_in_plain_text(request_: bytes, status: str) -> None:
    with serving(echo) as server, closing(connected(server.url)) as client:
        client.sendall(request_)
        head, _, body = rest(client).decode().partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.0 {status}")
    lines = head.splitlines()
    assert "Content-Type: text/plain; charset=utf-8" in lines
    assert "X-Content-Type-Options: nosniff" in lines
    assert "Server: bridge" in lines
    assert f"Content-Length: {len(body)}" in lines
    assert "<" not in body
    assert "Python" not in head


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(echo) as server:
        get(server.url)
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as client:
            client.sendall(b"GET / HT")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        get(server.url)
    assert capfd.readouterr() == ("", "")


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
        assert entered.wait(60)
        try:
            assert get(f"{server.url}/fast") == b"GET /fast"
        finally:
            release.set()
        slow.join(60)
        assert not slow.is_alive()


def test_close_frees_the_port_and_may_be_repeated() -> None:
    server = WsgiServer(echo, "127.0.0.1", 0)
    port = urlsplit(server.url).port or 0
    server.close()
    server.close()
    with closing(WsgiServer(echo, "127.0.0.1", port)) as again:
        assert get(again.url) == b"GET /"


# Clients that try to exhaust memory, descriptors or time do not affect other clients.


_SERVER = """
import os, resource, sys, time
from contextlib import suppress
from tests.unit.observability.test_http_server import echo
from bridge.observability.http_server import WsgiServer

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
server = WsgiServer(echo, "127.0.0.1", 0)
held = []
print(server.url, flush=True)
for line in sys.stdin:
    match line.strip():
        case "peak":  # memory at its highest, in kB
            status = open("/proc/self/status").read()
            print(int(status.partition("VmHWM:")[2].split()[0]), flush=True)
        case "burn":  # the share of a processor
            before = time.process_time()
            time.sleep(0.5)
            print((time.process_time() - before) / 0.5, flush=True)
        case "exhaust":
            with suppress(OSError):
                while True:
                    held.append(os.dup(0))
            print(len(held), flush=True)
        case "release":
            while held:
                os.close(held.pop())
            print(0, flush=True)
"""


class Server:
    """A server in its own process with 256 descriptors, which reports its usage."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = self._line()

    def ask(self, what: str) -> float:
        """Send `peak`, `burn`, `exhaust` or `release`, and return the answer."""
        assert self._process.stdin is not None
        print(what, file=self._process.stdin, flush=True)
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if sys.platform != "linux":
        pytest.skip("reads /proc")
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", _SERVER], **piped) as process:  # type: ignore[call-overload]
        try:
            yield Server(process)
        finally:
            process.kill()


def connected(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def rest(client: socket.socket) -> bytes:
    """Read until the connection ends, cleanly or not."""
    found = b""
    with suppress(ConnectionError):
        while piece := client.recv(65536):
            found += piece
    return found


def flood(url: str) -> None:
    """Send as many headers as http.client accepts, each of the maximum length."""
    with closing(connected(url)) as client, suppress(OSError):
        client.sendall(b"GET / HTTP/1.0\r\n")
        for number in range(98):
            client.sendall(b"X-%d: %s\r\n" % (number, b"x" * 65_000))
        rest(client)  # the request stays incomplete, so that the server would hold it


def test_headers_do_not_exhaust_memory(server: Server) -> None:
    before = server.ask("peak")
    clients = [threading.Thread(target=flood, args=(server.url,), daemon=True) for _ in range(60)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(60)
    assert server.ask("peak") - before < 20_000
    assert get(f"{server.url}/after") == b"GET /after"


def test_idle_connections_lock_nobody_out(server: Server) -> None:
    with descriptors(), ExitStack() as held:
        for _ in range(1000):
            held.enter_context(closing(connected(server.url)))
        for _ in range(5):
            assert get(f"{server.url}/healthz") == b"GET /healthz"
        assert server.ask("burn") < 0.25
        assert server.ask("exhaust") > 150  # descriptors left for others
        server.ask("release")


def test_without_descriptors_it_pauses_and_recovers(server: Server) -> None:
    server.ask("exhaust")
    with closing(connected(server.url)) as client:
        client.sendall(b"GET /late HTTP/1.0\r\n\r\n")
        assert server.ask("burn") < 0.25
        server.ask("release")
        assert rest(client).endswith(b"GET /late")


def test_a_new_connection_evicts_the_one_that_has_waited_longest() -> None:
    with closing(WsgiServer(echo, "127.0.0.1", 0, connections=2)) as server, ExitStack() as held:
        first, second, third = (held.enter_context(closing(connected(server.url))) for _ in range(3))
        assert rest(first) == b""
        for client, name in ((third, b"/third"), (second, b"/second")):
            client.sendall(b"GET %s HTTP/1.0\r\n\r\n" % name)
            assert rest(client).endswith(name)


def test_a_request_that_is_being_answered_is_not_evicted() -> None:
    entered, release = threading.Semaphore(0), threading.Event()

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        entered.release()
        release.wait(30)
        return echo(environ, start_response)

    with closing(WsgiServer(app, "127.0.0.1", 0, connections=2)) as server, ExitStack() as held:
        asking = [held.enter_context(closing(connected(server.url))) for _ in range(2)]
        for client in asking:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert entered.acquire(timeout=30)
        with closing(connected(server.url)) as surplus:
            assert rest(surplus) == b""
        release.set()
        for client in asking:
            assert rest(client).endswith(b"GET /")


def test_a_request_that_drips_is_cut_at_the_deadline() -> None:
    server = WsgiServer(echo, "127.0.0.1", 0, request_seconds=0.2)
    with closing(server), closing(connected(server.url)) as client:
        client.settimeout(0.05)
        assert any(cut(client) for _ in range(100))


def cut(client: socket.socket) -> bool:
    """Send one more byte and return whether the server has closed the connection."""
    try:
        client.sendall(b"X")
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


@contextmanager
def descriptors(number: int | None = None) -> Iterator[None]:
    """Limit the descriptors of this process to a number, or to as many as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number or hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_take_an_eighth_of_the_descriptors_at_most() -> None:
    with descriptors(207):
        server = WsgiServer(echo, "127.0.0.1", 0, request_seconds=60)
    with closing(server), ExitStack() as held:
        first, *_ = (held.enter_context(closing(connected(server.url))) for _ in range(207 // 8 + 1))
        assert rest(first) == b""


def test_a_connection_that_ended_without_a_request_is_not_chosen_for_eviction() -> None:
    with closing(WsgiServer(echo, "127.0.0.1", 0, connections=2)) as server:
        for _ in range(4):
            with closing(connected(server.url)) as client:
                client.shutdown(socket.SHUT_WR)
                assert rest(client) == b""
        with ExitStack() as held:
            first, _, third = (held.enter_context(closing(connected(server.url))) for _ in range(3))
            assert rest(first) == b""
            third.sendall(b"GET /third HTTP/1.0\r\n\r\n")
            assert rest(third).endswith(b"/third")


def test_the_application_is_not_called_for_half_a_request() -> None:
    with serving(echo) as server, closing(connected(server.url)) as client:
        client.sendall(b"GET /half HTTP/1.0\r\n")
        client.shutdown(socket.SHUT_WR)
        assert rest(client) == b""
