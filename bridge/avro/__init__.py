"""Avro: the schemas of the topics, their evolution, the registry that gives them ids, the wire format."""
