"""Messages of the feed: their model, their validation, and their conversion to Avro.

`converter` is the way in: one compiled walk (`transcoder`) for valid messages, pydantic (`parser`, `model`)
for all others, and to judge the walk.
"""
