"""duckdb from bridge.reader's batches."""

import json
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow

from bridge.reader import BETS, read_batches

bets = pyarrow.Table.from_batches(read_batches(BETS))
rows = duckdb.sql('SELECT * EXCLUDE (timestamp, partition, "offset") FROM bets')


def plain(value):
    match value:
        case dict():
            return {name: plain(inner) for name, inner in value.items()}
        case list():
            return [plain(inner) for inner in value]
        case datetime():
            return (value.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        case _:
            return value


for row in rows.fetchall():
    bet = dict(zip(rows.columns, row, strict=True))
    print(json.dumps({"key": bet.pop("key"), "value": plain(bet)}), flush=True)
