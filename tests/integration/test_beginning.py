"""`bridge init` against a provider and a cluster as one's own, and a bridge that runs with what it wrote."""

from __future__ import annotations

import os
from pathlib import Path

from bridge.config import load
from bridge.reader import BETS, read
from tests.harness import Bridge, Place, simulate

PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("BRIDGE_")}


async def test_a_bridge_runs_with_what_was_written(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "bridge.toml"

    def started(*command: str, **settings: str) -> Bridge:
        out, log = tmp_path / f"{command[0]}.out", tmp_path / f"{command[0]}.log"
        process = place.start(
            ("bridge", *command, "--config", str(file)), PLAIN | {"COLUMNS": "80"} | settings, out, log
        )
        place.bridges.append(bridge := Bridge(process, log))
        return bridge

    async with simulate() as feed:
        (token := tmp_path / "token").write_text(feed.rest.tokens.mint(feed.clock()))
        own = ("--provider", feed.url, "--token-file", str(token), "--prefix", place.prefix)
        cluster = ("--bootstrap-servers", place.cluster.bootstrap_servers)
        init = started("init", *own, *cluster, "--registry", place.cluster.registry_url)
        assert await init.wait() == 0, init.text() + (tmp_path / "init.out").read_text()
        assert "✓ kafka " in (tmp_path / "init.out").read_text()
        bridge = started("run", BRIDGE_WEB__PORT="0")
        await bridge.reaches("Live")
        job = started("currencies")
        assert await job.wait() == 0, job.text()
        assert await bridge.end() == 0
    assert next(read(BETS, settings=load(file))).key
