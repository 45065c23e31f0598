"""What the rows must be: those of the Kafka Streams application."""

from examples.engines import module_of

differences = module_of("kafka-streams", "check").differences
