package settlement;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;

/**
 * Drives the topology without a broker. Arguments: files of schemas, whose ids count from 1. A line on stdin
 * is a record, `topic key value` with the value in hexadecimal, or - for a tombstone; each record that comes
 * out is a line on stdout, {"key": …, "value": …}.
 */
public final class Driver {
    private static final String PREFIX = "test";

    private Driver() {}

    public static void main(String[] arguments) throws Exception {
        Map<Integer, Schema> schemas = new HashMap<>();
        for (String file : arguments) {
            schemas.put(schemas.size() + 1, new Schema.Parser().parse(new File(file)));
        }
        ObjectMapper json = new ObjectMapper();
        var settings = BetsBySelection.settings(PREFIX, "nowhere:1");
        settings.put("state.dir", Files.createTempDirectory(new File("").getAbsoluteFile().toPath(), "state").toString());
        try (var driver = new TopologyTestDriver(BetsBySelection.topology(PREFIX, "en", schemas::get), settings)) {
            TestOutputTopic<String, String> rows = driver.createOutputTopic(
                    PREFIX + "." + BetsBySelection.NAME, new StringDeserializer(), new StringDeserializer());
            for (String line : new String(System.in.readAllBytes()).split("\n")) {
                String[] record = line.split(" ");
                driver.createInputTopic(PREFIX + "." + record[0], new StringSerializer(), new ByteArraySerializer())
                        .pipeInput(record[1], record[2].equals("-") ? null : HexFormat.of().parseHex(record[2]));
                while (!rows.isEmpty()) {
                    var row = rows.readKeyValue();
                    var value = row.value == null ? null : json.readTree(row.value);
                    System.out.println(json.createObjectNode().put("key", row.key).set("value", value));
                }
            }
        }
    }
}
