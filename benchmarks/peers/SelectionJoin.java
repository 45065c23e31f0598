import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Writes a line for each selection of a bet, with the selection's name, and, with "count", counts them by
 * selection. Arguments: directory of the state, directory of the schemas, join or count.
 */
public final class SelectionJoin {
    private static final int HEADER_BYTES = 5;

    record Selection(String key, String betId, String result) {}

    public static void main(String[] arguments) throws Exception {
        String prefix = System.getenv("BRIDGE_TOPICS__PREFIX");
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, prefix + ".join");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, System.getenv("BRIDGE_KAFKA__BOOTSTRAP_SERVERS"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[0]);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.ISOLATION_LEVEL_CONFIG), "read_committed");
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        Schema bets = schema(arguments[1], "settled-bet"), names = schema(arguments[1], "translation");

        StreamsBuilder builder = new StreamsBuilder();
        GlobalKTable<String, byte[]> translations = builder.globalTable(
                prefix + ".translations", Consumed.with(Serdes.String(), Serdes.ByteArray()));
        KStream<String, String> joined = builder
                .stream(prefix + ".bets", Consumed.with(Serdes.String(), Serdes.ByteArray()))
                .flatMapValues(value -> selections(decode(bets, value)))
                .leftJoin(
                        translations,
                        (betId, selection) -> selection.key(),
                        (selection, name) -> selection.key() + '\t' + selection.betId() + '\t' + selection.result()
                                + '\t' + (name == null ? "" : decode(names, name).get("translations")))
                .selectKey((betId, line) -> line.substring(0, line.indexOf('\t')));
        joined.to(prefix + ".selections", Produced.with(Serdes.String(), Serdes.String()));
        if (arguments[2].equals("count")) {
            joined.groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                    .count(Materialized.with(Serdes.String(), Serdes.Long()));
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private static Schema schema(String directory, String name) throws Exception {
        return new Schema.Parser().parse(new File(directory, name + ".avsc"));
    }

    private static GenericRecord decode(Schema schema, byte[] value) {
        var decoder = DecoderFactory.get().binaryDecoder(value, HEADER_BYTES, value.length - HEADER_BYTES, null);
        try {
            return new GenericDatumReader<GenericRecord>(schema).read(null, decoder);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private static List<Selection> selections(GenericRecord bet) {
        List<Selection> found = new ArrayList<>();
        if (bet.get("selections") instanceof GenericData.Array<?> items) {
            for (Object item : items) {
                Object id = ((GenericRecord) item).get("selectionId");
                found.add(new Selection(
                        "selection:" + id, bet.get("betId").toString(), bet.get("betSettlement").toString()));
            }
        }
        return found;
    }
}
