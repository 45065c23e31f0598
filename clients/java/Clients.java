// kafka-clients with apicurio-registry-avro-serde-kafka.

import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

final class Clients {
    public static void main(String[] keys) throws Exception {
        String servers = System.getenv("BRIDGE_KAFKA__BOOTSTRAP_SERVERS");
        if (keys.length > 0) {
            Map<String, Object> settings = Map.of("bootstrap.servers", servers);
            try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                for (String key : keys) {
                    producer.send(new ProducerRecord<>("keys", key, "")).get();
                }
            }
            return;
        }
        // page
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", "payouts");
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed"); // without: aborted bets, too
        String registry = System.getenv("BRIDGE_REGISTRY__URL");
        registry = registry.replace("/apis/ccompat/v7", "/apis/registry/v3"); // without: 404
        settings.put("apicurio.registry.url", registry);
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", AvroKafkaDeserializer.class);
        try (var consumer = new KafkaConsumer<String, GenericRecord>(settings)) {
            consumer.subscribe(List.of("settlement.bets"));
            while (true) {
                for (var bet : consumer.poll(Duration.ofSeconds(1))) {
                    print(bet.key(), bet.value());
                }
            }
        }
        // /page
    }

    private static void print(String key, GenericRecord value) {
        System.out.println("{\"key\": \"" + key + "\", \"value\": " + value + "}");
    }
}
