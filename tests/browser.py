"""Headless Chromium, driven by its DevTools protocol over a WebSocket, without another dependency."""

from __future__ import annotations

import base64
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from websockets.sync.client import ClientConnection, connect

from tests.tools import lacking

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""The browser of this machine, if there is one."""
START_SECONDS = 60


class Tab:
    """One page of a browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._ids = itertools.count(1)
        self._loaded = False
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.messages: list[str] = []
        """What the page has written to its console, and what the browser complained of."""
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol for this page, and return its result."""
        return self._ask(method, self._session, **parameters)

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the page a size, in CSS pixels, and a colour scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Open an address and wait until it is loaded."""
        self._loaded = False
        self.ask("Page.navigate", url=url)
        while not self._loaded:
            self._note(orjson.loads(self._connection.recv(timeout=START_SECONDS)))

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript; a promise is waited for."""
        found = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition: str, seconds: float = 30) -> None:
        """Wait until a condition holds. Raises AssertionError."""
        waiting = (
            f"new Promise(done => {{ const end = Date.now() + {seconds * 1000}; (function look() {{"
            f"if ({condition}) done(true); else if (Date.now() > end) done(false);"
            "else setTimeout(look, 20) })() })"
        )
        assert self.evaluate(waiting), condition

    def screenshot(self) -> bytes:
        """Return the whole page as a PNG."""
        data: str = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        return base64.b64decode(data)

    def _ask(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        self._connection.send(orjson.dumps(message | ({"sessionId": session} if session else {})).decode())
        while True:
            answer = orjson.loads(self._connection.recv(timeout=START_SECONDS))
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        match event["method"]:
            case "Page.loadEventFired":
                self._loaded = True
            case "Log.entryAdded":
                self.messages.append(event["params"]["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.messages.append(str(event["params"]["exceptionDetails"]))


@contextmanager
def browser() -> Iterator[Tab]:
    """Run a browser with one page; without a browser the test is `lacking`."""
    if CHROMIUM is None:
        lacking("needs chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
        command += [
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-gpu",
            "--disable-lcd-text",
            "--disable-dev-shm-usage",
        ]
        command += ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as process:
            try:
                assert process.stderr is not None
                address = next(line.split()[-1] for line in process.stderr if "listening on ws://" in line)
                with connect(address, max_size=None, proxy=None) as connection:
                    yield Tab(connection)
            finally:
                process.kill()
