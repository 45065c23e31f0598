"""Of the parts of a storm that need no Kafka."""
