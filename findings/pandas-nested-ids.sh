#!/usr/bin/env bash
# pyarrow's to_pandas() rounds the ids in a list of records as soon as one id of the whole column is null, and no dtype
# shows it.
#
# Versions: pyarrow 25.0.1, pandas 3.1.1.
# Expected: a nullable integer at the top of a table becomes a float column, as is widely known, and its dtype says so.
#           In a list of records the values are Python objects, so an int stays an int and a null is None.
# Seen:     every id of the nested column is a Python float, those of rows without any null too, if a null stands in
#           any row: 9007199254740993 is 9007199254740992.0. The column's dtype is object with and without a null.
#           `types_mapper=pandas.ArrowDtype` and `integer_object_nulls=True` keep them exact.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==25.0.1 pandas==3.1.1
venv/bin/python - <<'PYTHON'
import pandas as pd
import pyarrow as pa

BIG = 2**53 + 1
selections = pa.list_(pa.struct([("id", pa.int64())]))


def first(rows, **options):
    column = pa.table({"selections": pa.array(rows, selections)}).to_pandas(**options)["selections"]
    found = column.iloc[0][0]["id"]
    print(str(column.dtype)[:40], type(found).__name__, repr(found))
    return found


whole = first([[{"id": BIG}], [{"id": 1}]])
rounded = first([[{"id": BIG}], [{"id": None}]])
arrow = first([[{"id": BIG}], [{"id": None}]], types_mapper=pd.ArrowDtype)
objects = first([[{"id": BIG}], [{"id": None}]], integer_object_nulls=True)
assert whole == arrow == objects == BIG
assert isinstance(rounded, float) and rounded == 2.0**53
PYTHON
