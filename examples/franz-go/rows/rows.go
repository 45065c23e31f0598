// Package rows makes the rows of a settled bet, one for each selection, with the names that are known now.
package rows

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
)

const mostDecimals = 8 // of a payout, unless the stake has more

// What is read of a bet. What may be null is a pointer: the zero of a value would be an id, or an amount.
type bet struct {
	BetID             string    `avro:"betId"`
	BetSettlement     string    `avro:"betSettlement"`
	SettlementVersion int64     `avro:"settlementVersion"`
	SettlementTime    time.Time `avro:"settlementTime"`
	Payout            float64   `avro:"payout"`
	Amount            *amount   `avro:"amount"`
	Selections        []item    `avro:"selections"`
}

type amount struct {
	Currency  *string `avro:"currency"`
	Value     int64   `avro:"value"`
	Precision int64   `avro:"precision"`
}

type item struct {
	pick
	Event           *thing `avro:"event"`
	CompetitionID   int64  `avro:"competitionId"`
	CountryID       int64  `avro:"countryId"`
	SportID         int64  `avro:"sportId"`
	BetBuilderItems []pick `avro:"betBuilderItems"`
}

// What was picked: by a selection, or by a part of a bet builder, which is of the same event.
type pick struct {
	Market      *thing      `avro:"market"`
	SelectionID int64       `avro:"selectionId"`
	Settlement  *settlement `avro:"settlement"`
}

type thing struct {
	ID int64 `avro:"id"`
}

type settlement struct {
	Result string `avro:"settlementResult"`
}

// Rows holds the names, and how many rows each bet has.
type Rows struct {
	language string
	schema   func(id int) (*avro.Schema, error)
	schemas  map[int]*avro.Schema
	names    map[string]string
	counts   map[string]int
}

// New returns rows with names in one language; schema returns the schema of an id, and is asked once for each.
func New(language string, schema func(id int) (*avro.Schema, error)) *Rows {
	return &Rows{language, schema, map[int]*avro.Schema{}, map[string]string{}, map[string]int{}}
}

// Translation takes a translation in; nil is a tombstone. A later name changes no row.
func (r *Rows) Translation(key string, value []byte) error {
	var found struct {
		Translations map[string]string `avro:"translations"`
	}
	err := r.decode(value, &found)
	if text, known := found.Translations[r.language]; known {
		r.names[key] = text
	} else {
		delete(r.names, key)
	}
	return err
}

// Bet returns a line of JSON for each row of a bet; nil, a tombstone, takes all of them back.
func (r *Rows) Bet(key string, value []byte) (lines []string, err error) {
	var found bet
	if err := r.decode(value, &found); err != nil {
		return nil, err
	}
	for index := range max(len(found.Selections), r.counts[key]) {
		line := map[string]any{"key": fmt.Sprintf("%s:%d", key, index), "value": nil}
		if index < len(found.Selections) {
			line["value"] = r.row(&found, index)
		}
		text, err := json.Marshal(line)
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(text))
	}
	if r.counts[key] = len(found.Selections); r.counts[key] == 0 {
		delete(r.counts, key)
	}
	return lines, nil
}

func (r *Rows) decode(value []byte, into any) error {
	if value == nil { // a tombstone
		return nil
	}
	id, data, err := new(sr.ConfluentHeader).DecodeID(value)
	if err == nil && r.schemas[id] == nil {
		r.schemas[id], err = r.schema(id)
	}
	if err == nil {
		_, err = r.schemas[id].Decode(data, into, avro.SkipUnknown())
	}
	return err
}

func (r *Rows) row(bet *bet, index int) map[string]any {
	item, parts := bet.Selections[index], []map[string]any{}
	for _, part := range item.BetBuilderItems {
		parts = append(parts, r.picked(item.Event, part))
	}
	row := map[string]any{
		"betId":             bet.BetID,
		"index":             index,
		"settlementVersion": bet.SettlementVersion,
		"settlementTime":    bet.SettlementTime.Format("2006-01-02T15:04:05.000000Z07:00"),
		"betSettlement":     bet.BetSettlement,
		"selectionId":       item.SelectionID,
		"sport":             r.name("sport:%d", item.SportID),
		"league":            r.name("league:%d", item.CompetitionID),
		"region":            r.name("region:%d", item.CountryID),
		"event":             nil,
		"parts":             parts,
	}
	if item.Event != nil {
		row["event"] = r.name("event:%d", item.Event.ID)
	}
	maps.Copy(row, r.picked(item.Event, item.pick))
	maps.Copy(row, money(bet.Amount, bet.Payout))
	return row
}

func (r *Rows) picked(event *thing, pick pick) map[string]any {
	found := map[string]any{"result": nil, "market": nil, "selection": r.name("selection:%d", pick.SelectionID)}
	if event != nil && pick.Market != nil {
		found["market"] = r.name("market:%d:%d", event.ID, pick.Market.ID)
	}
	if pick.Settlement != nil {
		found["result"] = pick.Settlement.Result
	}
	return found
}

// name returns nil where there is none yet, or none in this language.
func (r *Rows) name(key string, ids ...any) any {
	if text, known := r.names[fmt.Sprintf(key, ids...)]; known {
		return text
	}
	return nil
}

// money returns decimals in texts: a stake is exact, a payout is a double, of 15 digits.
func money(amount *amount, payout float64) map[string]any {
	found, precision := map[string]any{"currency": nil, "stake": nil}, int32(0)
	if amount != nil {
		precision = int32(amount.Precision)
		found["currency"] = amount.Currency
		found["stake"] = decimal.New(amount.Value, -precision).StringFixed(precision)
	}
	digits := 15
	if math.Abs(payout) >= 1e13 {
		digits = -1 // all that it has
	}
	exact := decimal.RequireFromString(strconv.FormatFloat(payout, 'g', digits, 64)).RoundBank(max(precision, mostDecimals))
	_, decimals, _ := strings.Cut(exact.String(), ".")
	found["payout"] = exact.StringFixed(max(int32(len(decimals)), min(precision, mostDecimals)))
	return found
}
