// segmentio/kafka-go with linkedin/goavro/v2.
package main

import (
	"context"
	"os"
	"strings"

	"clients/plain"

	"github.com/linkedin/goavro/v2"
	"github.com/segmentio/kafka-go"
)

func main() {
	ctx, servers := context.Background(), strings.Split(os.Getenv("BRIDGE_KAFKA__BOOTSTRAP_SERVERS"), ",")
	if len(os.Args) > 1 {
		writer := kafka.Writer{
			Addr:     kafka.TCP(servers...),
			Topic:    "keys",
			Balancer: kafka.Murmur2Balancer{}, // without: round robin
		}
		var messages []kafka.Message
		for _, key := range os.Args[1:] {
			messages = append(messages, kafka.Message{Key: []byte(key)})
		}
		if err := writer.WriteMessages(ctx, messages...); err != nil {
			panic(err)
		}
		return
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:        servers,
		GroupID:        "payouts",
		Topic:          "settlement.bets",
		StartOffset:    kafka.FirstOffset,
		IsolationLevel: kafka.ReadCommitted, // does not help
	})
	for {
		message := plain.Must(reader.ReadMessage(ctx))
		var bet any
		if len(message.Value) > 6 { // no tombstone, and no marker of a transaction
			schema, data := plain.Schema(message.Value)
			bet, _, _ = plain.Must(goavro.NewCodec(schema)).NativeFromBinary(data)
		}
		plain.Print(message.Key, plain.Plain(bet))
	}
}
