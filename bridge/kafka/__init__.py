"""Kafka: clients and their errors, topics, transactions, leader election, reading a topic to its end."""
