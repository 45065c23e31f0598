"""A schema registry in memory, behind a local HTTP server."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeRegistry:
    """Subjects with at most one version each. `refusal`, if set, decides first."""

    def __init__(self) -> None:
        self.subjects: dict[str, str] = {}
        self.compatibility: dict[str, str] = {}
        self.users: set[str | None] = set()
        self.names: list[str] = []
        """Of the clients with another certificate than the last one."""
        self.refusal: Callable[[str, str], tuple[int, Any] | None] = lambda method, path: None
        self.requests = 0

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.requests += 1
        if refused := self.refusal(method, path):
            return refused
        match method, path.partition("?")[0].strip("/").split("/"):
            case "GET", ["subjects", name, "versions"] if name in self.subjects:
                return 200, [1]
            case "GET", ["subjects", name, "versions", "1"] if name in self.subjects:
                number = 100 + list(self.subjects).index(name)
                return 200, {"subject": name, "version": 1, "id": number, "schema": self.subjects[name]}
            case "POST", ["subjects", name, "versions"]:
                self.subjects[name] = body["schema"]
                return 200, {"id": 100 + list(self.subjects).index(name)}
            case "POST", ["subjects", name] if self.subjects.get(name) == body["schema"]:
                number = 100 + list(self.subjects).index(name)
                return 200, {"subject": name, "version": 1, "id": number, "schema": body["schema"]}
            case "GET", ["config", name] if name in self.compatibility:
                return 200, {"compatibilityLevel": self.compatibility[name]}
            case "PUT", ["config", name] if name in self.subjects:
                self.compatibility[name] = body["compatibility"]
                return 200, {"compatibility": body["compatibility"]}
            case "GET", ["schemas", "ids", number] if 0 <= int(number) - 100 < len(self.subjects):
                return 200, {"schema": list(self.subjects.values())[int(number) - 100]}
        return 404, {"error_code": 40403, "message": "Schema not found"}


@contextmanager
def served(fake: FakeRegistry, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve the fake over HTTP or HTTPS; its address."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            user = self.headers.get("Authorization")
            if isinstance(self.connection, ssl.SSLSocket) and (shown := self.connection.getpeercert()):
                name = str(shown["subject"][0][0][1])
                if fake.names[-1:] != [name]:
                    fake.names.append(name)
            fake.users.add(base64.b64decode(user.removeprefix("Basic ")).decode() if user else None)
            status, answer = fake.answer(self.command, self.path, body)
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = handle_any  # noqa: N815 - the names that http.server looks for

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as inherited
            """Do not log requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
