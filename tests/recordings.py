"""Avro files of settled bets, as `bridge replay` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fastavro

from bridge.avro.schemas import load
from tests.bets import BARE_BET

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
"""Long ago, microseconds."""


def bet(seconds: float, number: int = 0, **fields: Any) -> dict[str, Any]:
    """A bet that was settled so long after the beginning."""
    return {**BARE_BET, "betId": f"b{number}", "settlementTime": BEGIN + round(seconds * SECOND), **fields}


def write(
    path: Path,
    bets: Iterable[Mapping[str, Any]],
    schema: Any = None,
    codec: str = "null",
    block: int = 16_000,
) -> Path:
    """Write bets, in blocks of so many bytes."""
    with path.open("wb") as file:
        parsed = fastavro.parse_schema(schema or load("settled-bet"))
        fastavro.writer(file, parsed, bets, codec=codec, sync_interval=block)
    return path
