import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;

/** Reads a value of one schema as a consumer that knows another: OldConsumer WRITER READER VALUE. */
public final class OldConsumer {
    private static final int HEADER_BYTES = 5;

    public static void main(String[] files) throws Exception {
        Schema writer = new Schema.Parser().parse(Files.readString(Path.of(files[0])));
        Schema reader = new Schema.Parser().parse(Files.readString(Path.of(files[1])));
        byte[] value = Files.readAllBytes(Path.of(files[2]));
        var decoder = DecoderFactory.get().binaryDecoder(value, HEADER_BYTES, value.length - HEADER_BYTES, null);
        System.out.println(GenericData.get().toString(new GenericDatumReader<>(writer, reader).read(null, decoder)));
    }
}
