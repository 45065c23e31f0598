"""`bridge run`: owns the feed and publishes what it sends."""
