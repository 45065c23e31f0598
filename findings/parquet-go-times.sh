#!/usr/bin/env bash
# parquet-go turns a timestamp of microseconds into another year, without an error, when it lies outside 1678 to 2262.
#
# Versions: github.com/parquet-go/parquet-go v0.32.0, file written by pyarrow 25.0.1.
# Expected: the column says MICROS and UTC, and the field is a time.Time, which holds any year: the same instant, or
#           an error. 0001-01-01T00:00:00Z is Go's own zero time, and what many APIs send for "not set".
# Seen:     0001-01-01 is 1754-08-30T22:43:41.128654848Z, and 9999-12-31T23:59:59.999999Z is 1816-03-30: the value is
#           multiplied to nanoseconds in 64 bits, also when the field's tag says timestamp(microsecond). Read as
#           int64 all values are right; a null is Go's zero time, so it is what 0001-01-01 should have been.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'chmod -R u+w "$place"; rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==25.0.1
venv/bin/python - <<'PYTHON'
import pyarrow as pa
from pyarrow import parquet

first, last, usual = -62135596800000000, 253402300799999999, 1769868000123456
times = pa.array([first, last, usual, None], pa.timestamp("us", tz="UTC"))
parquet.write_table(pa.table({"at": times}), "times.parquet")
PYTHON
export GOPATH="$place/go" GOFLAGS=-mod=mod
go mod init example >go.log 2>&1
go get github.com/parquet-go/parquet-go@v0.32.0 >>go.log 2>&1 || { cat go.log; exit 2; }
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/parquet-go/parquet-go"
)

type tagged struct {
	At time.Time `parquet:"at,optional,timestamp(microsecond)"`
}

type plain struct {
	At time.Time `parquet:"at,optional"`
}

type number struct {
	At int64 `parquet:"at,optional"`
}

func must[T any](rows []T, err error) []T {
	if err != nil {
		panic(err)
	}
	return rows
}

func main() {
	for _, row := range must(parquet.ReadFile[tagged]("times.parquet")) {
		fmt.Println("tagged", row.At.UTC().Format(time.RFC3339Nano))
	}
	for _, row := range must(parquet.ReadFile[plain]("times.parquet")) {
		fmt.Println("plain", row.At.UTC().Format(time.RFC3339Nano))
	}
	for _, row := range must(parquet.ReadFile[number]("times.parquet")) {
		fmt.Println("number", row.At)
	}
}
GO
go run . | tee seen
diff seen - <<'SEEN'
tagged 1754-08-30T22:43:41.128654848Z
tagged 1816-03-30T05:56:08.066276376Z
tagged 2026-01-31T14:00:00.123456Z
tagged 0001-01-01T00:00:00Z
plain 1754-08-30T22:43:41.128654848Z
plain 1816-03-30T05:56:08.066276376Z
plain 2026-01-31T14:00:00.123456Z
plain 0001-01-01T00:00:00Z
number -62135596800000000
number 253402300799999999
number 1769868000123456
number 0
SEEN
