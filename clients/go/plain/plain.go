// Package plain fetches schemas, and prints what hamba/avro and goavro decode.
package plain

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// Must panics with an error.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Schema returns the text of the schema that a value names, and the Avro behind its header.
func Schema(value []byte) (string, []byte) {
	id, data, err := new(sr.ConfluentHeader).DecodeID(value)
	registry := Must(sr.NewClient(sr.URLs(os.Getenv("BRIDGE_REGISTRY__URL"))))
	return Must(registry.SchemaByID(context.Background(), Must(id, err))).Schema, data
}

// Print prints a line of JSON.
func Print(key []byte, value any) {
	line := map[string]any{"key": string(key), "value": value}
	fmt.Println(string(Must(json.Marshal(line))))
}

// page
// Plain takes away what both libraries put around a value of a union: its type's name.
func Plain(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if len(value) == 1 && name == "map" {
				return inner
			}
			if len(value) == 1 && (strings.Contains("array string long double long.timestamp-micros", name) || strings.HasPrefix(name, "settlement.")) {
				return Plain(inner)
			}
			value[name] = Plain(inner)
		}
	case []any:
		for at, inner := range value {
			value[at] = Plain(inner)
		}
	case time.Time:
		return value.UnixMicro()
	}
	return value
}

// /page
