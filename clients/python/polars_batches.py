"""polars from bridge.reader's batches."""

import json

import polars
import pyarrow

from bridge.reader import BETS, read_batches

bets = polars.from_arrow(pyarrow.Table.from_batches(read_batches(BETS)))


def longs(kind):
    match kind:  # with times as integers
        case polars.Struct():
            return polars.Struct({field.name: longs(field.dtype) for field in kind.fields})
        case polars.List():
            return polars.List(longs(kind.inner))
        case polars.Datetime():
            return polars.Int64()
        case _:
            return kind


bets = bets.cast({name: longs(kind) for name, kind in bets.schema.items()})
for bet in bets.drop("timestamp", "partition", "offset").to_dicts():
    print(json.dumps({"key": bet.pop("key"), "value": bet}), flush=True)
