"""The records of our topics: what is in them, and the topics themselves.

A module a record (`checkpoint`, `gap`, `dead_letter`): its type, and how it is written and read, by a table
of its fields (`avro_form`) or by its headers; a bet's is in `bridge.messages` and `bridge.avro`. `message`
and `place` have what all records have, `reach` how far a topic was written, `topics` and `rights` what the
topics must be like in Kafka.
"""
