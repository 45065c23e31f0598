"""An issuer that gives tokens by OAuth's client credentials, as a server of this machine."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from bridge_sandbox.cluster.ports import HOST
from tests.signing import token_of
from tests.tools import serves

Answer = tuple[int, Any]


class Issuer:
    """Gives clients that know the password tokens for themselves, unless `answer` is another one."""

    def __init__(self, password: str) -> None:
        self.password = password
        self.asked: list[str] = []
        """What clients have sent as their credentials."""
        self.forms: list[dict[str, str]] = []
        """What they have asked for."""
        self.issued: list[str] = []
        """The tokens."""
        self.answer: Callable[[str], Answer] = self._token
        self.address = ""

    def grant(self, credentials: str, form: dict[str, str]) -> Answer:
        """Answer a request."""
        self.asked.append(credentials)
        self.forms.append(form)
        user, _, password = credentials.partition(":")
        return self.answer(user) if password == self.password else (401, {"error": "invalid_client"})

    def _token(self, user: str) -> Answer:
        """Return one that Kafka takes for 10 s."""
        self.issued.append(token := token_of(user, time.time() + 10))
        return 200, {"access_token": token}


@contextmanager
def serving(password: str, tls: ssl.SSLContext | None = None, port: int = 0) -> Iterator[Issuer]:
    """Serve a new issuer, by HTTP or HTTPS."""
    issuer = Issuer(password)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, answer = issuer.grant(given, dict(parse_qsl(form)))
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with serves(ThreadingHTTPServer((HOST, port), Handler), tls) as address:
        issuer.address = f"{address}/token"
        yield issuer
