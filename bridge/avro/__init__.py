"""Avro: the schemas that ship with the bridge, their evolution, and the codec of its records."""
