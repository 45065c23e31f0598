"""Messages of the feed: their model, their validation, and their conversion to Avro."""
