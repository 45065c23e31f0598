"""What the bridge keeps, in Kafka and in memory: checkpoints, gaps, dead letters, what it has published."""
