"""Reads back what bridges have written, to go on from it: for the owner, and for who examines or repairs.

The checkpoint (`checkpoint_reader`), how far the topics reach by it (`reach_reader`), the gaps, and which
bets are published (`restore`). Everything is read to the end, `read_committed`; a reader that gives up says
so.
"""
