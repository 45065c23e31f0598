// kafka-streams with apicurio-registry-avro-serde-kafka.

import static org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;

import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import java.util.Map;
import java.util.Properties;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

final class Streams {
    public static void main(String[] arguments) {
        // page
        Properties settings = new Properties();
        settings.put("application.id", "payouts");
        settings.put("bootstrap.servers", System.getenv("BRIDGE_KAFKA__BOOTSTRAP_SERVERS"));
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("consumer.isolation.level", "read_committed"); // without: aborted bets, too
        String registry = System.getenv("BRIDGE_REGISTRY__URL");
        registry = registry.replace("/apis/ccompat/v7", "/apis/registry/v3"); // without: 404
        var values = new AvroKafkaDeserializer<GenericRecord>();
        values.configure(Map.of("apicurio.registry.url", registry), false);
        var bets = new StreamsBuilder();
        bets.stream("settlement.bets", Consumed.with(Serdes.String(), Serdes.serdeFrom(new AvroKafkaSerializer<>(), values)))
                .foreach((key, bet) -> print(key, bet));
        var streams = new KafkaStreams(bets.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return SHUTDOWN_APPLICATION;
        });
        streams.start();
        // /page
    }

    private static void print(String key, GenericRecord value) {
        System.out.println("{\"key\": \"" + key + "\", \"value\": " + value + "}");
    }
}
