"""Into Kafka: the batch, the guard, the checkpoint, leadership and the one transactional producer."""
