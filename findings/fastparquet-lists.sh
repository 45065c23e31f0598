#!/usr/bin/env bash
# fastparquet reads a list of records as null in every row, and a decimal as a float that is not the nearest one.
#
# Versions: fastparquet 2026.9.0, pandas 3.1.1, file written by pyarrow 25.0.1.
# Expected: lists of dictionaries, or an error that nested columns are not supported; -12.5, which a double holds.
# Seen:     the column of lists is there, and None in every row, without a warning; so a bet looks as if it had no
#           selections. The decimal -12.5 is -12.500000000000002: the unscaled integer times 10**-18. 784.1062 of
#           scale 18 comes out as 784.1062000000001.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check fastparquet==2026.9.0 pandas==3.1.1 pyarrow==25.0.1
venv/bin/python - <<'PYTHON'
from decimal import Decimal

import pyarrow as pa
from fastparquet import ParquetFile
from pyarrow import parquet

selection = pa.struct([("id", pa.int64()), ("event", pa.string())])
written = pa.table(
    {
        "selections": pa.array([[{"id": 1, "event": "A"}], [], [{"id": 2, "event": "B"}]], pa.list_(selection)),
        "stake": pa.array([Decimal("-12.5"), Decimal("784.1062"), Decimal(0)], pa.decimal128(38, 18)),
    }
)
parquet.write_table(written, "bets.parquet")
frame = ParquetFile("bets.parquet").to_pandas()
selections, stakes = list(frame["selections"]), list(frame["stake"])
print(selections, [float(stake) for stake in stakes])
assert selections == [None, None, None]
assert stakes[:2] == [-12.500000000000002, 784.1062000000001]
assert parquet.read_table("bets.parquet").equals(written)
PYTHON
