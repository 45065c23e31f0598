"""A TCP port before the provider's, which is away while this does not run.

python -m benchmarks.front PORT PROVIDER_PORT
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress

_BYTES = 65_536


async def main(port: int, provider: int) -> None:
    """Forward connections to the provider until killed; prints `open` as a line of JSON once it listens."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", provider)
        await asyncio.gather(_pipe(reader, back), _pipe(there, writer))

    async with await asyncio.start_server(forward, "127.0.0.1", port) as server:
        print(json.dumps({"open": True}), flush=True)
        await server.serve_forever()


async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_BYTES):
            target.write(data)
            await target.drain()
    target.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
