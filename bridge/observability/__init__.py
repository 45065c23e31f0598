"""What a running program shows: health, metrics, pages, over HTTP."""
