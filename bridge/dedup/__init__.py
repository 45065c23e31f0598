"""The deduplicator: which bets and dead letters are published, in what version and content.

`deduplicator` decides what a message is (new, a duplicate, stale, a correction), on the walk of a hash
table of its own (`hash_table`), and forgets what no replay can bring back (`eviction_horizon`). No IO.
"""
