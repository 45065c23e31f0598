"""Kafka: clients and their errors, topics, schema registry, transactions, leader election, topic scans."""
