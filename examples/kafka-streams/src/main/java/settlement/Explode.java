package settlement;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.util.Utf8;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;

/**
 * Makes a row of JSON of each selection of a bet, under betId:index. A bet that is settled again has the same
 * keys; rows of selections that it no longer has are taken back by tombstones.
 */
final class Explode implements Processor<String, byte[], String, String> {
    /** Store: betId → number of rows. */
    static final String COUNTS = "counts";
    /** Store of the GlobalKTable: key of a translation → its record. */
    static final String NAMES = "names";

    /** A double holds no more decimals of any amount that matters. */
    private static final int MOST_DECIMALS = 8;

    private final Utf8 language;
    private final AvroValues values;
    private final ObjectMapper json = new ObjectMapper();
    private ProcessorContext<String, String> context;
    private KeyValueStore<String, Integer> counts;
    private TimestampedKeyValueStore<String, byte[]> names;

    Explode(String language, AvroValues values) {
        this.language = new Utf8(language);
        this.values = values;
    }

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
        counts = context.getStateStore(COUNTS);
        names = context.getStateStore(NAMES);
    }

    @Override
    public void process(Record<String, byte[]> bet) {
        List<String> rows = bet.value() == null ? List.of() : rows(values.decode(bet.value()));
        Integer before = counts.get(bet.key());
        for (int index = 0; index < Math.max(rows.size(), before == null ? 0 : before); index++) {
            String row = index < rows.size() ? rows.get(index) : null;
            context.forward(bet.withKey(bet.key() + ":" + index).withValue(row));
        }
        counts.put(bet.key(), rows.isEmpty() ? null : rows.size());
    }

    private List<String> rows(GenericRecord bet) {
        List<String> rows = new ArrayList<>();
        for (GenericRecord item : records(bet.get("selections"))) {
            ObjectNode row = json.createObjectNode();
            row.put("betId", text(bet.get("betId")));
            row.put("index", rows.size());
            row.put("settlementVersion", (Long) bet.get("settlementVersion"));
            row.put("settlementTime", time((Long) bet.get("settlementTime")));
            row.put("betSettlement", text(bet.get("betSettlement")));
            putMoney(row, (GenericRecord) bet.get("amount"), (Double) bet.get("payout"));
            row.put("selectionId", (Long) item.get("selectionId"));
            row.put("result", result(item));
            putNames(row, item);
            rows.add(row.toString());
        }
        return rows;
    }

    /** Money as decimals in texts: a stake is exact, a payout is a double, of 15 digits. */
    private static void putMoney(ObjectNode row, GenericRecord amount, double payout) {
        int precision = 0;
        row.putNull("currency").putNull("stake");
        if (amount != null) {
            precision = ((Long) amount.get("precision")).intValue();
            row.put("currency", text(amount.get("currency")));
            row.put("stake", BigDecimal.valueOf((Long) amount.get("value"), precision).toPlainString());
        }
        var digits = Math.abs(payout) < 1e13
                ? new BigDecimal(payout).round(new MathContext(15, RoundingMode.HALF_EVEN))
                : BigDecimal.valueOf(payout);
        var exact = digits.setScale(Math.max(precision, MOST_DECIMALS), RoundingMode.HALF_EVEN).stripTrailingZeros();
        int decimals = Math.max(exact.scale(), Math.min(precision, MOST_DECIMALS));
        row.put("payout", exact.setScale(decimals).toPlainString());
    }

    private void putNames(ObjectNode row, GenericRecord item) {
        row.put("sport", name("sport:" + item.get("sportId")));
        row.put("league", name("league:" + item.get("competitionId")));
        row.put("region", name("region:" + item.get("countryId")));
        GenericRecord event = (GenericRecord) item.get("event");
        row.put("event", event == null ? null : name("event:" + event.get("id")));
        putPicked(row, event, item);
        var parts = row.putArray("parts");
        for (GenericRecord part : records(item.get("betBuilderItems"))) {
            putPicked(parts.addObject().put("result", result(part)), event, part);
        }
    }

    /** What was picked: by a selection, or by a part of a bet builder, which is of the same event. */
    private void putPicked(ObjectNode row, GenericRecord event, GenericRecord item) {
        GenericRecord market = (GenericRecord) item.get("market");
        boolean isNamed = event != null && market != null;
        row.put("market", isNamed ? name("market:" + event.get("id") + ":" + market.get("id")) : null);
        row.put("selection", name("selection:" + item.get("selectionId")));
    }

    /** The name that is published now; null where there is none yet, or none in this language. */
    private String name(String key) {
        var record = names.get(key);
        return record == null ? null : text(((Map<?, ?>) values.decode(record.value()).get("translations")).get(language));
    }

    private static String result(GenericRecord item) {
        return item.get("settlement") instanceof GenericRecord found ? text(found.get("settlementResult")) : null;
    }

    private static String time(long micros) {
        return Instant.EPOCH.plus(micros, ChronoUnit.MICROS).toString();
    }

    private static String text(Object value) {
        return value == null ? null : value.toString();
    }

    @SuppressWarnings("unchecked")
    private static List<GenericRecord> records(Object array) {
        return array == null ? List.of() : (List<GenericRecord>) array;
    }
}
