"""What an operator changes by hand, as the owner of the feed for a moment."""
