"""The control endpoint over HTTP, beside a feed that is being read."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bridge.sandbox.provider.rest.tokens import SCOPES, Tokens
from bridge.sandbox.provider.server import PATH, Simulator
from bridge.sandbox.provider.settings import SimulatorSettings


def simulator(**changes: Any) -> Simulator:
    chosen = {"port": 0, "control_port": 0, "rate": 500, "compression": "none", **changes}
    return Simulator(SimulatorSettings(**chosen))


def connection(provider: Simulator, query: str = "") -> connect:
    address = provider.url.replace("http", "ws", 1)
    return connect(f"{address}{PATH}{query}", proxy=None, close_timeout=0.2, max_queue=None)


def request(url: str | None, method: str, place: str, body: str = "", **headers: str) -> tuple[int, str]:
    assert url is not None
    address = urlsplit(url)
    client = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    try:
        client.request(method, place, body or None, headers)
        response = client.getresponse()
        return response.status, response.read().decode()
    finally:
        client.close()


async def drain(client: ClientConnection) -> None:
    """Read until nothing more comes, or the connection ends."""
    while True:
        await asyncio.wait_for(client.recv(), 0.3)


async def post(provider: Simulator, place: str, **choices: Any) -> Any:
    status, body = await asyncio.to_thread(request, provider.control_url, "POST", place, json.dumps(choices))
    assert status == 200, body
    return json.loads(body)


async def inflict(provider: Simulator, fault: str, **choices: Any) -> None:
    await post(provider, f"/faults/{fault}", **choices)


async def page(provider: Simulator, place: str) -> Any:
    status, body = await asyncio.to_thread(request, provider.control_url, "GET", place)
    assert status == 200, body
    return json.loads(body)


async def test_the_feed_continues_while_the_truth_is_read() -> None:
    """Returning twenty thousand messages takes seconds and does not delay the live stream."""
    async with (
        asyncio.timeout(60),
        simulator(rate=200, history_seconds=100) as provider,
        connection(provider) as client,
    ):
        answering = asyncio.create_task(asyncio.to_thread(request, provider.control_url, "GET", "/truth"))
        meanwhile = 0
        while not answering.done():
            await client.recv()
            meanwhile += 1
        _, body = await answering
    assert len(body.splitlines()) > 20_000
    assert meanwhile > 20


async def test_faults_reach_the_feed() -> None:
    """Each is seen by the client: silence and its end, a refusal, a close code, a cut without any."""
    async with simulator() as provider, asyncio.timeout(20):
        async with connection(provider) as client:
            await inflict(provider, "stall")
            with pytest.raises(TimeoutError):
                await drain(client)
            assert (await page(provider, "/state"))["faults"] == {"stall": None}
            await inflict(provider, "clear")
            await client.recv()
            await inflict(provider, "refuse", count=1, status=401)
            await inflict(provider, "drop", code=1012)
            with pytest.raises(ConnectionClosed) as caught:
                await drain(client)
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 1012
        with pytest.raises(InvalidStatus, match="401"):
            await connection(provider)
        async with connection(provider) as client:
            assert len(await page(provider, "/connections")) == 1
            await inflict(provider, "drop", abort=True)
            with pytest.raises(ConnectionClosed) as caught:
                await drain(client)
            assert caught.value.rcvd is None
        assert [attempt["status"] for attempt in await page(provider, "/attempts")] == [101, 401, 101]
        assert await page(provider, "/breaches") == []


async def test_a_taken_control_port_is_an_error() -> None:
    """It is not replaced by another port, which no client would know; the feed does not stay open."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            await simulator(control_port=port).__aenter__()


async def test_the_control_endpoint_closes_if_the_feed_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("no certificate")
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    with pytest.raises(OSError, match="PEM"):
        await simulator(control_port=port, certificate=tmp_path / "no.pem").__aenter__()
    socket.create_server(("127.0.0.1", port)).close()


def test_the_command_says_where_both_are(tmp_path: Path) -> None:
    """Both addresses come first, the token's file is there by then, and SIGTERM ends it with 0."""
    taken = socket.create_server(("127.0.0.1", 0))
    port = str(taken.getsockname()[1])
    config, token = tmp_path / "provider.toml", tmp_path / "token"
    config.write_text(
        "port = 1\nrate = 50\n[sizes]\nsports = 3\nevents = 5\n"
        '[api]\nsecret = "a key of many characters"\nlanguages = ["en", "ja"]\n'
    )
    command = [sys.executable, "-m", "bridge", "simulate", "--config", str(config), "--api-rate", "50"]
    command += ["--port", port, "--control-port", "0", "--api-token-file", str(token)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BRIDGE_")}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        feed, note, control = (process.stderr.readline() for _ in range(3))
        assert feed.startswith("provider at http://127.0.0.1:")
        assert note == f"port {port} is taken, using {feed.strip().rsplit(':', 1)[1]}\n"
        assert control.startswith("control at http://127.0.0.1:")
        state = json.loads(request(control.split()[2], "GET", "/state")[1])
        assert (state["rate"], state["seed"]) == (50, 1)
        assert [
            (file.name, file.stat().st_mode & 0o777) for file in tmp_path.iterdir() if file != config
        ] == [("token", 0o600)]
        assert Tokens("a key of many characters").scopes(time.time(), f"Bearer {token.read_text()}") == SCOPES
        languages = [
            request(feed.split()[2], "GET", place, Authorization=f"Bearer {token.read_text()}")[1].count("{")
            for place in (f"/api/translations/{language}/sports" for language in ("en", "ja", "sv"))
        ]
        assert languages == [3, 3, 0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        taken.close()
        process.communicate()


def test_a_wrong_option_is_reported_before_the_start(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bridge", "simulate", "--port", "0", "--api-token-file", "nowhere/token"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: --api-token-file: cannot write nowhere/token: No such file")
