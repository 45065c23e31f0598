"""The simulated provider on a loopback socket, read by a plain websockets client."""

from __future__ import annotations

import asyncio
import time
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from pydantic import SecretStr
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Close

from bridge.sandbox.provider.faults import Clear, ClockJump, Drop, Stall
from bridge.sandbox.provider.server import PATH, Simulator
from bridge.sandbox.provider.settings import SimulatorSettings


def settings(**changes: Any) -> SimulatorSettings:
    return SimulatorSettings(**{"port": 0, "rate": 2000, "compression": "none", **changes})


def connection(simulator: Simulator, query: str = "", **options: Any) -> connect:
    address = simulator.url.replace("http", "ws", 1)
    # A client that leaves with its queue full would wait long for the provider's half of the close.
    return connect(f"{address}{PATH}{query}", proxy=None, **{"close_timeout": 0.2, **options})


async def read(socket: ClientConnection, count: int) -> list[bytes]:
    """The next messages that are not pings."""
    got: list[bytes] = []
    async with asyncio.timeout(10):
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
    """History by replay, then the live stream, then what was injected: every byte of the truth, in order."""
    async with (
        Simulator(settings(history_seconds=1)) as simulator,
        connection(simulator, f"?revision={int(simulator.now()) - 10}") as socket,
    ):
        got = await read(socket, 2400)
        simulator.inject(b'{"data":{"betId":7}}')
        simulator.inject(b"\xff\x00")
        simulator.stop_publishing()
        truth = [message.body for message in simulator.published()]
        got += await read(socket, len(truth) - len(got))
    assert got == truth
    assert len(truth) > 2400


async def test_a_refusal_can_be_a_close_code() -> None:
    """The handshake is accepted, and the connection closed at once with code and reason."""
    async with (
        asyncio.timeout(5),
        Simulator(settings(refusal="close", refusal_close_code=4029)) as simulator,
        connection(simulator) as first,
        connection(simulator) as second,
    ):
        with pytest.raises(ConnectionClosed) as caught:
            await second.recv()
        assert caught.value.rcvd == Close(4029, "active: another connection is active")
        await read(first, 1)


async def test_the_second_can_replace_the_first() -> None:
    """With second = replace the first is closed, even while the provider is stalled."""
    async with Simulator(settings(second="replace")) as simulator, connection(simulator) as first:
        simulator.inflict(Stall())
        await asyncio.sleep(0.05)
        async with connection(simulator) as second, asyncio.timeout(5):
            with pytest.raises(ConnectionClosed):
                await drain(first)
            simulator.inflict(Clear())
            await read(second, 1)


async def test_a_client_without_credentials_is_refused() -> None:
    wanted = settings(auth="header", auth_name="X-Key", auth_value=SecretStr("s3cret"))
    async with Simulator(wanted) as simulator:
        assert await refusal(simulator, additional_headers={"X-Key": "s3cretx"}) == 401
        async with connection(simulator, additional_headers={"X-Key": "s3cret"}):
            assert [attempt.status for attempt in simulator.connections] == [401, 101]


async def test_a_client_that_ends_without_a_closing_handshake_frees_its_place() -> None:
    async with Simulator(settings()) as simulator:
        socket = await connection(simulator)
        await read(socket, 1)
        socket.transport.abort()
        await socket.wait_closed()
        async with connection(simulator) as again:
            await read(again, 1)


async def test_a_drop_closes_the_connection() -> None:
    """A dropped client sees a close with a handshake, an aborted one without."""
    async with Simulator(settings()) as simulator:
        for abort, code in ((False, 1001), (True, None)):
            async with connection(simulator) as socket:
                await read(socket, 1)
                simulator.inflict(Drop(abort=abort))
                with pytest.raises(ConnectionClosed) as caught:
                    await read(socket, 10**6)
                assert (caught.value.rcvd.code if caught.value.rcvd else None) == code


async def test_long_messages_go_out_in_fragments() -> None:
    """Frames have the size asked for, the last what is left, and the messages are whole."""
    wanted = settings(rate=20, fragment_bytes=4000, large_every=2, large_bytes=10_000)
    async with Simulator(wanted) as simulator, asyncio.timeout(10):
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
        asyncio.timeout(10),
        Simulator(settings(rate=20_000)) as simulator,
        connection(simulator, max_queue=1),
    ):
        await asyncio.sleep(0.3)
        simulator.inflict(Drop(abort=True))
        async with connection(simulator) as again:
            assert len(await read(again, 1)) == 1


async def test_a_client_that_does_not_read_holds_the_sender_up() -> None:
    """A slow client loses nothing: the rest waits at the provider, not in its memory."""
    async with Simulator(settings(rate=20_000, history_seconds=0.5)) as simulator:
        async with connection(simulator, f"?revision={int(simulator.now()) - 10}", max_queue=4) as socket:
            await asyncio.sleep(0.3)
            got = await read(socket, 4000)
        truth = simulator.published()
        assert got == [next(truth).body for _ in got]


async def test_pings_and_replies() -> None:
    """Pings are messages with a pingId, and what the client answers can be looked up."""
    async with (
        Simulator(settings(ping_seconds=0.05)) as simulator,
        connection(simulator, max_queue=None) as socket,
        asyncio.timeout(5),
    ):
        while b'"pingId":"' not in (ping := await socket.recv(decode=False)):
            pass
        await socket.send(ping, text=True)
    assert list(simulator.replies) == [ping.decode()]


async def test_the_date_header_is_the_providers_clock() -> None:
    """Accepted or refused, with a skew and after a jump, which does not affect the log of connections."""
    async with Simulator(settings(clock_skew_seconds=7200)) as simulator:
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
