// Drives the rows without a broker, as Driver.java of the Kafka Streams example does.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"join/rows"

	"github.com/twmb/avro"
)

func main() {
	table := rows.New("en", func(id int) (*avro.Schema, error) {
		text, err := os.ReadFile(os.Args[id])
		if err != nil {
			return nil, err
		}
		return avro.Parse(string(text))
	})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		record := strings.Split(in.Text(), " ")
		var value []byte
		if record[2] != "-" {
			value, _ = hex.DecodeString(record[2])
		}
		var lines []string
		var err error
		if record[0] == "bets" {
			lines, err = table.Bet(record[1], value)
		} else {
			err = table.Translation(record[1], value)
		}
		if err != nil {
			panic(err)
		}
		for _, line := range lines {
			fmt.Println(line)
		}
	}
}
