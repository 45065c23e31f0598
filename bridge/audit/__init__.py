"""`bridge audit`: proves from the topics that nothing was lost, doubled, taken back or left undeclared.

`run` reads each topic once, in an order in which a running bridge cannot look wrong, and hands the records
to what judges them without IO: `checkpoints`, `bets` with `placement`, `letters`. What these find is kept in
`findings`, and shown by `report`.
"""
