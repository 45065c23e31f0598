#!/usr/bin/env bash
# Arrow for JavaScript shows a decimal without its scale: 784.1062 is 784106200000000000000.
#
# Versions: apache-arrow 21.2.0 (npm), Node.js 20; stream written by pyarrow 25.0.1.
# Expected: toString() and toJSON() of a value of decimal128(38, 18) give 784.1062, as the text of Arrow's other
#           implementations does; the type knows its scale.
# Seen:     both give the unscaled integer, so money is 10**18 times too much and nothing says so; in JSON it is quoted
#           twice. The scale is in table.schema, for the caller to apply.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==25.0.1
venv/bin/python - <<'PYTHON'
from decimal import Decimal

import pyarrow as pa

table = pa.table({"stake": pa.array([Decimal("784.1062"), Decimal("-12.5")], pa.decimal128(38, 18))})
with pa.OSFile("stakes.arrows", "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
    stream.write_table(table)
PYTHON
npm install --silent --no-fund --no-audit --prefix . apache-arrow@21.2.0
cat >read.mjs <<'JAVASCRIPT'
import { readFileSync } from "node:fs";
import { tableFromIPC } from "apache-arrow";

const table = tableFromIPC(readFileSync("stakes.arrows"));
for (const { stake } of table) console.log(String(stake), JSON.stringify({ stake }));
console.log(String(table.schema.fields[0].type), table.schema.fields[0].type.scale);
JAVASCRIPT
node read.mjs | tee seen
diff seen - <<'SEEN'
784106200000000000000 {"stake":"\"784106200000000000000\""}
-12500000000000000000 {"stake":"\"-12500000000000000000\""}
Decimal[38e+18] 18
SEEN
