"""The simulated provider on loopback sockets, asked by plain clients: feed, control endpoint, REST side."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.messages.converter import make_converter
from bridge.messages.parser import MessageParser
from bridge_sandbox.provider.faults import ClockJump, Drop, Refuse
from bridge_sandbox.provider.rest.faults import RestFault
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.rest.tokens import SCOPES, Tokens
from bridge_sandbox.provider.server import PATH, Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.messages import SIMULATED
from tests.recordings import bet, write


def simulated(**changes: Any) -> Simulator:
    api = RestPolicy(rate=100_000, burst=100_000)
    chosen = {"port": 0, "rate": 500, "compression": "none", "api": api, **changes}
    return Simulator(SimulatorSettings(**chosen))


def connection(simulator: Simulator, query: str = "", **options: Any) -> connect:
    address = simulator.url.replace("http", "ws", 1)
    # A client that leaves with its queue full would wait long for the provider's half of the close.
    return connect(f"{address}{PATH}{query}", proxy=None, **{"close_timeout": 0.2, **options})


async def read(socket: ClientConnection, count: int) -> list[bytes]:
    """The next messages that are not pings."""
    got: list[bytes] = []
    async with asyncio.timeout(60):
        while len(got) < count:
            frame = await socket.recv(decode=False)
            if b'"pingId":"' not in frame:
                got.append(frame)
    return got


async def drain(socket: ClientConnection) -> None:
    """Read until the connection ends."""
    while True:
        await socket.recv()


async def refusal(simulator: Simulator, query: str = "", **options: Any) -> int:
    with pytest.raises(InvalidStatus) as caught:
        await connection(simulator, query, **options)
    return caught.value.response.status_code


async def test_a_client_gets_the_whole_truth() -> None:
    async with (
        simulated(history_seconds=1) as simulator,
        connection(simulator, f"?revision={int(simulator.now()) - 10}") as socket,
    ):
        got = await read(socket, 600)
        simulator.inject(b'{"data":{"betId":7}}')
        simulator.inject(b"\xff\x00")
        simulator.stop_publishing()
        truth = [message.body for message in simulator.published()]
        got += await read(socket, len(truth) - len(got))
    assert got == truth
    assert len(truth) > 600


async def test_a_client_that_ends_without_a_closing_handshake_frees_its_place() -> None:
    async with simulated() as simulator:
        socket = await connection(simulator)
        await read(socket, 1)
        socket.transport.abort()
        await socket.wait_closed()
        async with connection(simulator) as again:
            await read(again, 1)


async def test_long_messages_go_out_in_fragments() -> None:
    wanted = simulated(rate=20, fragment_bytes=4000, large_every=2, large_bytes=10_000)
    async with wanted as simulator, asyncio.timeout(60):
        async with connection(simulator, "?revision=0") as socket:
            whole = await read(socket, 6)
        async with connection(simulator, "?revision=0") as socket:
            sizes: list[list[int]] = []
            for _ in range(6):
                sizes.append([len(part) async for part in socket.recv_streaming(decode=False)])
        bodies = {message.body for message in simulator.published()}
    assert set(whole) <= bodies
    long = [message for message in sizes if sum(message) > 4000]
    assert long
    for first, *rest in long:
        assert {first, *rest[:-2]} == {4000}
    assert [len(message) for message in sizes if sum(message) <= 4000] == [1] * (6 - len(long))


async def test_an_abort_does_not_wait_for_a_client_that_does_not_read() -> None:
    async with (
        asyncio.timeout(60),
        simulated(rate=20_000) as simulator,
        connection(simulator, max_queue=1),
    ):
        await asyncio.sleep(0.3)
        simulator.inflict(Drop(abort=True))
        async with connection(simulator) as again:
            assert len(await read(again, 1)) == 1


async def test_a_client_that_does_not_read_holds_the_sender_up() -> None:
    async with simulated(rate=20_000, history_seconds=0.5) as simulator:
        async with connection(simulator, f"?revision={int(simulator.now()) - 10}", max_queue=4) as socket:
            await asyncio.sleep(0.3)
            got = await read(socket, 4000)
        truth = simulator.published()
        assert got == [next(truth).body for _ in got]


async def test_the_date_header_is_the_providers_clock() -> None:
    async with simulated(clock_skew_seconds=7200) as simulator:
        simulator.inflict(ClockJump(by=-3600))
        async with connection(simulator) as socket:
            assert socket.response is not None
            with pytest.raises(InvalidStatus) as caught:
                await connection(simulator)
        for response in (socket.response, caught.value.response):
            assert len(response.headers.get_all("Date")) == 1
            moment = parsedate_to_datetime(response.headers["Date"]).timestamp()
            assert moment == pytest.approx(time.time() + 3600, abs=3)
        assert simulator.clock() == pytest.approx(simulator.now() - 3600, abs=1)
        assert simulator.connections[0].at == pytest.approx(time.time() + 7200, abs=3)


# The control endpoint over HTTP, beside a feed that is being read.


def get(address: str, **headers: str) -> str:
    with httpx2.Client(trust_env=False, headers=headers, timeout=10) as http:
        answer = http.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


async def page(provider: Simulator, place: str) -> Any:
    return json.loads(await asyncio.to_thread(get, f"{provider.control_url}{place}"))


async def inflict(provider: Simulator, fault: str, **choices: Any) -> None:
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"{provider.control_url}/faults/{fault}", json=choices)
    assert answer.status_code == 200, answer.text


async def test_the_feed_continues_while_the_truth_is_read() -> None:
    async with (
        asyncio.timeout(60),
        simulated(control_port=0, rate=50, history_seconds=200) as provider,
        connection(provider, max_queue=None) as client,
    ):
        answering = asyncio.create_task(asyncio.to_thread(get, f"{provider.control_url}/truth"))
        meanwhile = 0
        while not answering.done():
            await client.recv()
            meanwhile += 1
        body = await answering
    assert len(body.splitlines()) > 10_000
    assert meanwhile > 5


async def test_faults_reach_the_feed() -> None:
    """Each is seen by the client: silence and its end, a refusal, a close code, a cut without any."""
    async with simulated(control_port=0, rate=500) as provider, asyncio.timeout(60):
        async with connection(provider) as client:
            await inflict(provider, "stall")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(drain(client), 0.3)
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


async def test_the_control_endpoint_closes_if_the_feed_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("no certificate")
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    with pytest.raises(OSError, match="PEM"):
        await simulated(control_port=port, certificate=tmp_path / "no.pem").__aenter__()
    socket.create_server(("127.0.0.1", port)).close()


def test_the_command_says_where_both_are(tmp_path: Path) -> None:
    config, token = tmp_path / "provider.toml", tmp_path / "token"
    config.write_text(
        "port = 1\nrate = 50\n[sizes]\nsports = 3\nevents = 5\n"
        '[api]\nsecret = "a key of many characters"\nlanguages = ["en", "ja"]\n'
    )
    command = [sys.executable, "-m", "bridge", "simulate", "--config", str(config), "--api-rate", "50"]
    command += ["--port", "0", "--limits-scale", "60", "--control-port", "0", "--api-token-file", str(token)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BRIDGE_")}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        feed, control = (process.stderr.readline() for _ in range(2))
        assert feed.startswith("provider at http://127.0.0.1:")
        assert [process.stdout.readline() for _ in range(4)] == [
            f"export BRIDGE_FEED__BASE_URL={feed.split()[2]}\n",
            f"export BRIDGE_API__BASE_URL={feed.split()[2]}\n",
            f"export BRIDGE_API__TOKEN_FILE={token}\n",
            "export BRIDGE_LIMITS__SCALE=60\n",
        ]
        assert control.startswith("control at http://127.0.0.1:")
        state = json.loads(get(f"{control.split()[2]}/state"))
        assert (state["rate"], state["seed"]) == (50, 1)
        assert [
            (file.name, file.stat().st_mode & 0o777) for file in tmp_path.iterdir() if file != config
        ] == [("token", 0o600)]
        assert Tokens("a key of many characters").scopes(time.time(), f"Bearer {token.read_text()}") == SCOPES
        languages = [
            get(f"{feed.split()[2]}{place}", Authorization=f"Bearer {token.read_text()}").count("{")
            for place in (f"/api/translations/{language}/sports" for language in ("en", "ja", "sv"))
        ]
        assert languages == [3, 3, 0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


async def test_recorded_bets_are_played_and_a_bridge_makes_the_recorded_bytes_of_them(tmp_path: Path) -> None:
    codec = Codec(load("settled-bet"), 1)
    converter = make_converter(MessageParser(), codec)

    def published(messages: list[bytes]) -> list[bytes]:
        return [bet[3] for message in messages if (bet := converter.convert(message)[1])]

    records = published(SIMULATED)
    path = write(tmp_path / "bets.avro", map(codec.decode, records), codec="deflate")
    settings = SimulatorSettings(port=0, control_port=0, bets=(path,), speed=0, keep_times=True)
    async with Simulator(settings) as simulator, connection(simulator) as socket:
        async with httpx2.AsyncClient(trust_env=False, base_url=str(simulator.control_url)) as control:
            await control.post("/step", json={"count": 2})
            got = await read(socket, 2)
            await control.post("/speed", json={"speed": "max"})
            got += await read(socket, 298)
        state = await page(simulator, "/state")
        assert state["recording"].items() >= {"bets": 300, "speed": "max"}.items()
        assert state["recording"]["ends"] < state["now"]
        await socket.close()
        async with connection(simulator, f"?revision={int(simulator.now()) - 100}") as again:
            assert await read(again, 300) == got
    assert published(got) == records


def test_the_command_says_what_it_plays_and_when_that_has_ended(tmp_path: Path) -> None:
    path = write(tmp_path / "bets.avro", [bet(0), bet(1, 1)])
    command = [sys.executable, "-m", "bridge", "simulate", "--port", "0", "--bets", str(path)]
    command += ["--bets", str(tmp_path), "--speed", "max", "--history", "1s"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
    assert said[1:] == [
        "playing 4 bets, recorded from 2023-11-14T22:13:20Z to 2023-11-14T22:13:21Z\n",
        "the recording has ended: everything is published, pings and replays go on\n",
    ]
    (tmp_path / "bets.avro").write_bytes(path.read_bytes()[:-1])
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: {path} is damaged at byte ")


@pytest.mark.parametrize("option", ["--port", "--control-port"])
def test_a_given_port_that_is_taken_is_an_error_with_its_holder(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = [sys.executable, "-m", "bridge", "simulate", "--port", "0", option, str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    said = (
        rf"error: the simulator cannot start: port {port} is taken by \S+ \(pid {os.getpid()}\)\. Stop .+\n"
    )
    assert re.fullmatch(said, ended.stderr), ended.stderr


# The REST side of the simulated provider on a loopback socket, asked by a plain HTTP client.


SPORTS = "/api/translations/sv/sports"


def client(provider: Simulator, **options: Any) -> httpx2.AsyncClient:
    token = provider.rest.tokens.mint(provider.clock())
    return httpx2.AsyncClient(
        base_url=provider.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, **options
    )


async def test_the_feed_goes_on_beside_it() -> None:
    async with (
        asyncio.timeout(60),
        simulated() as provider,
        client(provider) as http,
        connection(provider, max_queue=None) as feed,
    ):
        await feed.recv()
        found = await asyncio.gather(*(http.get(SPORTS) for _ in range(20)))
        await feed.recv()
    assert {answer.status_code for answer in found} == {200}
    assert [attempt.status for attempt in provider.connections] == [101]


async def test_a_refusal_has_status_headers_and_the_providers_time() -> None:
    api = RestPolicy(rate=0.01, burst=1)
    async with simulated(api=api, clock_skew_seconds=7200) as provider, client(provider) as http:
        answers = [
            await http.get(SPORTS, headers={"Authorization": "Bearer x"}),
            await http.get(SPORTS),
            await http.get(SPORTS),
            await http.get("/api/nothing"),
        ]
    assert [answer.status_code for answer in answers] == [401, 200, 429, 404]
    assert [answer.reason_phrase for answer in answers[1:3]] == ["OK", "Too Many Requests"]
    assert 90 <= int(answers[2].headers["Retry-After"]) <= 100
    assert answers[0].json()["status"] == 401
    for answer in answers:
        moment = parsedate_to_datetime(answer.headers["Date"]).timestamp()
        assert moment == pytest.approx(time.time() + 7200, abs=5)


@pytest.mark.parametrize("pause", [600, "Mon, 21 Sep 2026 14:13:20 GMT"])
async def test_a_refused_handshake_may_ask_for_a_pause(pause: int | str) -> None:
    async with simulated() as provider:
        provider.inflict(Refuse(count=1, retry_after=pause))
        with pytest.raises(InvalidStatus) as refused:
            await connection(provider, "?revision=0")
    assert refused.value.response.headers["Retry-After"] == str(pause)


async def test_faults_reach_the_client() -> None:
    async with simulated() as provider, client(provider, timeout=0.2) as http:
        elsewhere = {"Location": "https://elsewhere.example/"}
        provider.rest.faults.inject(RestFault(nth=1, status=307, headers=elsewhere))
        provider.rest.faults.inject(
            RestFault(nth=2, status=502, body="<p>å", headers={"Content-Type": "text/html"})
        )
        provider.rest.faults.inject(RestFault(nth=3, truncate=True))
        provider.rest.faults.inject(RestFault(nth=4, delay=0.5))
        redirect, html, half = [await http.get(SPORTS) for _ in range(3)]
        with pytest.raises(httpx2.ReadTimeout):
            await http.get(SPORTS)
        last = await http.get(SPORTS)
    assert (redirect.status_code, redirect.headers["Location"]) == (307, elsewhere["Location"])
    assert (html.status_code, html.headers["Content-Type"], html.text) == (502, "text/html", "<p>å")
    assert half.content == last.content[: len(last.content) // 2]
    assert [exchange.status for exchange in provider.rest.requests] == [307, 502, 200, 200, 200]
    assert [exchange.fault for exchange in provider.rest.requests] == [True] * 4 + [False]


async def test_two_authorization_headers_are_none() -> None:
    async with simulated() as provider, client(provider) as http:
        good = http.headers["Authorization"]
        answer = await http.get(SPORTS, headers=[("Authorization", good), ("Authorization", good)])
    assert answer.status_code == 401
