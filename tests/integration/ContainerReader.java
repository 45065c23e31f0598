import java.io.File;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;

/** Prints the records of an object container file as JSON lines: ContainerReader FILE. */
public final class ContainerReader {
    public static void main(String[] files) throws Exception {
        try (var records = new DataFileReader<>(new File(files[0]), new GenericDatumReader<GenericRecord>())) {
            for (GenericRecord record : records) {
                System.out.println(record);
            }
        }
    }
}
