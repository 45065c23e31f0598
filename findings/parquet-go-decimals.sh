#!/usr/bin/env bash
# parquet-go reads a decimal of 16 bytes into a float64 or an int64 as raw bytes, without an error.
#
# Versions: github.com/parquet-go/parquet-go v0.32.0, file written by pyarrow 25.0.1.
# Expected: an error, since neither type can be a DECIMAL(38, 18), or the number that it is.
# Seen:     784.1062 is 2.1800754380841732e-106 as float64 and 3026418949592973312 as int64: eight of the sixteen
#           bytes, whatever they mean. -12.5 is NaN. Read as bytes the value is there: big-endian, to be scaled.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'chmod -R u+w "$place"; rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==25.0.1
venv/bin/python - <<'PYTHON'
from decimal import Decimal

import pyarrow as pa
from pyarrow import parquet

stakes = [Decimal("784.106200000000000100"), Decimal("-12.5")]
parquet.write_table(pa.table({"stake": pa.array(stakes, pa.decimal128(38, 18))}), "stakes.parquet")
PYTHON
export GOPATH="$place/go" GOFLAGS=-mod=mod
go mod init example >go.log 2>&1
go get github.com/parquet-go/parquet-go@v0.32.0 >>go.log 2>&1 || { cat go.log; exit 2; }
cat >main.go <<'GO'
package main

import (
	"fmt"
	"math/big"

	"github.com/parquet-go/parquet-go"
)

type float struct {
	Stake float64 `parquet:"stake,optional"`
}

type integer struct {
	Stake int64 `parquet:"stake,optional"`
}

type raw struct {
	Stake []byte `parquet:"stake,optional"`
}

func must[T any](rows []T, err error) []T {
	if err != nil {
		panic(err)
	}
	return rows
}

func main() {
	for _, row := range must(parquet.ReadFile[float]("stakes.parquet")) {
		fmt.Println("float64", row.Stake)
	}
	for _, row := range must(parquet.ReadFile[integer]("stakes.parquet")) {
		fmt.Println("int64", row.Stake)
	}
	for _, row := range must(parquet.ReadFile[raw]("stakes.parquet")) {
		unscaled := new(big.Int).SetBytes(row.Stake)
		if row.Stake[0] >= 0x80 {
			unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), 128))
		}
		fmt.Println("bytes", unscaled)
	}
}
GO
go run . | tee seen
diff seen - <<'SEEN'
float64 2.1800754380841732e-106
float64 NaN
int64 3026418949592973312
int64 -1
bytes 784106200000000000100
bytes -12500000000000000000
SEEN
