// Settled bets with their names, from the beginning of the topics: a line of JSON for each row that changes.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"join/rows"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

var (
	servers      = cmp.Or(os.Getenv("BRIDGE_KAFKA__BOOTSTRAP_SERVERS"), "127.0.0.1:9092")
	address      = cmp.Or(os.Getenv("BRIDGE_REGISTRY__URL"), "http://127.0.0.1:8080/apis/ccompat/v7")
	prefix       = cmp.Or(os.Getenv("BRIDGE_TOPICS__PREFIX"), "settlement")
	bets         = prefix + ".bets"
	translations = prefix + ".translations"
)

func main() {
	language := flag.String("language", "en", "of the names")
	untilEnd := flag.Bool("until-end", false, "end when the bets that are there have been printed")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := join(ctx, *language, *untilEnd); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func join(ctx context.Context, language string, untilEnd bool) error {
	registry, err := sr.NewClient(sr.URLs(address))
	if err != nil {
		return err
	}
	// No group: everybody needs all translations, and the rows of a bet are counted in memory.
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.ConsumeTopics(translations),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // without: aborted bets, too
		kgo.KeepControlRecords(),                     // what lies before an end is mostly a transaction's marker
	)
	if err != nil {
		return err
	}
	defer client.Close()
	left, err := ends(ctx, client)
	if err != nil {
		return err
	}
	table := rows.New(language, func(id int) (*avro.Schema, error) {
		schema, err := registry.SchemaByID(ctx, id)
		if err != nil {
			return nil, err
		}
		return avro.Parse(schema.Schema)
	})
	out := bufio.NewWriter(os.Stdout)
	follow := func(topic string, forEver bool) error {
		for forEver || len(left[topic]) > 0 {
			fetches := client.PollFetches(ctx)
			for _, failed := range fetches.Errors() {
				return fmt.Errorf("%s: %w", failed.Topic, failed.Err)
			}
			for record := range fetches.RecordsAll() {
				if err := take(out, table, record); err != nil {
					return fmt.Errorf("%s %s: %w", record.Topic, record.Key, err)
				}
				if record.Offset+1 >= left[record.Topic][record.Partition] {
					delete(left[record.Topic], record.Partition)
				}
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := follow(translations, false); err != nil {
		return err
	}
	client.AddConsumeTopics(bets)
	return follow(bets, !untilEnd)
}

// ends returns where the partitions end that have records: topic → partition → offset behind the last.
func ends(ctx context.Context, client *kgo.Client) (map[string]map[int32]int64, error) {
	found, err := kadm.NewClient(client).ListCommittedOffsets(ctx, bets, translations)
	if err != nil {
		return nil, err
	}
	left := map[string]map[int32]int64{bets: {}, translations: {}}
	found.Each(func(end kadm.ListedOffset) {
		if errors.Is(end.Err, kerr.UnknownTopicOrPartition) {
			err = errors.Join(fmt.Errorf("there is no topic %s. Run `bridge topics apply`", end.Topic), err)
		} else if end.Err != nil {
			err = errors.Join(end.Err, err)
		} else if end.Offset > 0 {
			left[end.Topic][end.Partition] = end.Offset
		}
	})
	return left, err
}

// take takes a record in, and prints the rows that it makes.
func take(out *bufio.Writer, table *rows.Rows, record *kgo.Record) error {
	key := string(record.Key)
	switch {
	case record.Attrs.IsControl():
		return nil
	case record.Topic == translations:
		return table.Translation(key, record.Value)
	}
	lines, err := table.Bet(key, record.Value)
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	return err
}
