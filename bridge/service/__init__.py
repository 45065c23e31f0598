"""`bridge run`: stands by, owns the feed, and publishes what it sends.

`app` is the process: `startup`, standby, one term of ownership after the other, status. `owner` is one
term: it fences, restores and assembles the parts around what the term knows (`term`). `connector` opens a
connection, `feed_loop` reads it, `pipeline` makes records of messages, `checkpointer` commits them.
"""
