package settlement;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntFunction;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;

/** Decodes values in Confluent's wire format: a zero, the id of the writer's schema in 4 bytes, and Avro. */
final class AvroValues {
    private static final int HEADER_BYTES = 5;

    private final IntFunction<Schema> schemas;
    private final Map<Integer, GenericDatumReader<GenericRecord>> readers = new HashMap<>();

    AvroValues(IntFunction<Schema> schemas) {
        this.schemas = schemas;
    }

    /** Schemas by id, from a registry that speaks Confluent's API. */
    static IntFunction<Schema> registry(String url) {
        HttpClient client = HttpClient.newHttpClient();
        return id -> {
            HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/schemas/ids/" + id)).build();
            try {
                var response = client.send(request, HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() != 200) {
                    throw new IOException("no schema " + id + " at " + url + ": HTTP " + response.statusCode());
                }
                String schema = new ObjectMapper().readTree(response.body()).get("schema").asText();
                return new Schema.Parser().parse(schema);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException(error);
            }
        };
    }

    GenericRecord decode(byte[] value) {
        if (value.length < HEADER_BYTES || value[0] != 0) {
            throw new IllegalArgumentException("not in Confluent's wire format");
        }
        int id = ByteBuffer.wrap(value).getInt(1);
        var reader = readers.computeIfAbsent(id, key -> new GenericDatumReader<>(schemas.apply(key)));
        var decoder = DecoderFactory.get().binaryDecoder(value, HEADER_BYTES, value.length - HEADER_BYTES, null);
        try {
            return reader.read(null, decoder);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
