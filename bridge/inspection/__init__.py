"""Reads what the bridge has written to its topics: a module for what a person asks of them.

`replay` gives the bets between two times, by time of receipt (`merging`) and narrowed by a `selection`.
`export` and `files` write them to a file, `formats` to a terminal, `copying` to a topic. `explain` is about
one bet, `readers` about checkpoint and leadership; the others are about what their names say.
"""
