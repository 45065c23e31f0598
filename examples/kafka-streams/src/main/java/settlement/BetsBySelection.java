package settlement;

import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.function.IntFunction;
import org.apache.avro.Schema;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Writes a row for each selection of a settled bet, with its names in one language, to a compacted topic.
 * Argument: the language, by default en. Addresses and prefix come from the bridge's environment variables.
 */
public final class BetsBySelection {
    static final String NAME = "bets-by-selection";

    private BetsBySelection() {}

    public static void main(String[] arguments) throws Exception {
        String prefix = setting("BRIDGE_TOPICS__PREFIX", "settlement");
        String servers = setting("BRIDGE_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:9092");
        String registry = setting("BRIDGE_REGISTRY__URL", "http://127.0.0.1:8080/apis/ccompat/v7");
        String language = arguments.length > 0 ? arguments[0] : "en";
        createTopic(servers, prefix);
        CountDownLatch ended = new CountDownLatch(1);
        var streams = new KafkaStreams(
                topology(prefix, language, AvroValues.registry(registry)), settings(prefix, servers));
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) {
                ended.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        ended.await();
        if (streams.state() == KafkaStreams.State.ERROR) {
            System.exit(1);
        }
    }

    static Topology topology(String prefix, String language, IntFunction<Schema> schemas) {
        StreamsBuilder builder = new StreamsBuilder();
        // As bytes, which take less memory than what they decode to.
        builder.globalTable(
                prefix + ".translations",
                Consumed.with(Serdes.String(), Serdes.ByteArray()),
                Materialized.<String, byte[], KeyValueStore<Bytes, byte[]>>as(Explode.NAMES)
                        .withKeySerde(Serdes.String())
                        .withValueSerde(Serdes.ByteArray()));
        builder.addStateStore(Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore(Explode.COUNTS), Serdes.String(), Serdes.Integer()));
        builder.stream(prefix + ".bets", Consumed.with(Serdes.String(), Serdes.ByteArray()))
                .process(() -> new Explode(language, new AvroValues(schemas)), Explode.COUNTS)
                .to(prefix + "." + NAME, Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    static Properties settings(String prefix, String servers) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, prefix + "." + NAME);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, "state");
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        // exactly_once_v2 implies it. With any other guarantee aborted records would be read without it.
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.ISOLATION_LEVEL_CONFIG), "read_committed");
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        return settings;
    }

    /** Creates the topic of rows with as many partitions as that of bets has. */
    private static void createTopic(String servers, String prefix) throws Exception {
        String bets = prefix + ".bets";
        try (Admin admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, servers))) {
            int partitions = admin.describeTopics(Set.of(bets)).allTopicNames().get().get(bets).partitions().size();
            var rows = new NewTopic(prefix + "." + NAME, Optional.of(partitions), Optional.empty());
            rows.configs(Map.of(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_COMPACT));
            admin.createTopics(Set.of(rows)).all().get();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                System.err.println("error: there is no topic " + bets + ". Run `bridge topics apply`.");
                System.exit(1);
            }
            if (!(error.getCause() instanceof TopicExistsException)) {
                throw error;
            }
        }
    }

    private static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }
}
