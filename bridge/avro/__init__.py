"""Avro: the schemas that ship with the bridge, the registry, and the codec of its records."""
