"""Avro: the schemas that ship with the bridge, their evolution, and the codec of its records.

`codec` is the way in: it frames what the compiled `encoder` writes, and `decoder` reads in any version of a
schema; `columns` and `arrow` fill whole columns instead. `mismatch` says why a datum does not fit.
"""
