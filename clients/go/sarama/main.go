// sarama with hamba/avro/v2.
package main

import (
	"context"
	"os"
	"strings"

	"clients/plain"

	"github.com/IBM/sarama"
	"github.com/hamba/avro/v2"
)

func main() {
	servers := strings.Split(os.Getenv("BRIDGE_KAFKA__BOOTSTRAP_SERVERS"), ",")
	settings := sarama.NewConfig()
	if len(os.Args) > 1 {
		settings.Producer.Return.Successes = true
		settings.Producer.Partitioner = sarama.NewMurmur2Partitioner // without: FNV-1a
		producer := plain.Must(sarama.NewSyncProducer(servers, settings))
		for _, key := range os.Args[1:] {
			message := sarama.ProducerMessage{Topic: "keys", Key: sarama.StringEncoder(key)}
			if _, _, err := producer.SendMessage(&message); err != nil {
				panic(err)
			}
		}
		return
	}
	// page
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	settings.Consumer.IsolationLevel = sarama.ReadCommitted // without: aborted bets, too
	group := plain.Must(sarama.NewConsumerGroup(servers, "payouts", settings))
	panic(group.Consume(context.Background(), []string{"settlement.bets"}, handler{}))
	// /page
}

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// page
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		var bet any
		if message.Value != nil {
			schema, data := plain.Schema(message.Value)
			if err := avro.Unmarshal(plain.Must(avro.Parse(schema)), data, &bet); err != nil {
				return err
			}
		}
		plain.Print(message.Key, plain.Plain(bet))
		session.MarkMessage(message, "")
	}
	return nil
}

// /page
