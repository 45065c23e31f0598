"""Who owns the feed, and what only the owner may write.

The owner is the member of a consumer group that Kafka assigns the topic of checkpoints (`election`, `group`).
It writes batches in transactions that fence its predecessors (`batch_writer`), and watches whether what Kafka
has acknowledged is still there (`lost_record_guard`). `bridge run`, the commands that repair a feed and the
snapshot jobs take it in the same way, and end what they do on Ctrl-C and SIGTERM (`signals`).
"""
