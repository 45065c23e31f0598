"""The state of the bridge, in Kafka and in memory: checkpoints, gaps, dead letters, the deduplicator."""
