// franz-go with twmb/avro.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx, servers := context.Background(), kgo.SeedBrokers(os.Getenv("BRIDGE_KAFKA__BOOTSTRAP_SERVERS"))
	if len(os.Args) > 1 {
		producer := must(kgo.NewClient(servers))
		for _, key := range os.Args[1:] {
			must(producer.ProduceSync(ctx, &kgo.Record{Topic: "keys", Key: []byte(key)}).First())
		}
		return
	}
	schemas := map[int]*avro.Schema{}
	// page
	consumer := must(kgo.NewClient(servers,
		kgo.ConsumerGroup("payouts"),
		kgo.ConsumeTopics("settlement.bets"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // without: aborted bets, too
	))
	registry := must(sr.NewClient(sr.URLs(os.Getenv("BRIDGE_REGISTRY__URL"))))
	decode := func(value []byte) json.RawMessage {
		if value == nil {
			return nil // a tombstone
		}
		id, data, err := new(sr.ConfluentHeader).DecodeID(value)
		schema := schemas[must(id, err)]
		if schema == nil {
			schema = avro.MustParse(must(registry.SchemaByID(ctx, id)).Schema)
			schemas[id] = schema
		}
		var bet any
		must(schema.Decode(data, &bet))
		return must(schema.EncodeJSON(bet))
	}
	for {
		for _, record := range consumer.PollFetches(ctx).Records() {
			line := map[string]any{"key": string(record.Key), "value": decode(record.Value)}
			fmt.Println(string(must(json.Marshal(line))))
		}
	}
	// /page
}
