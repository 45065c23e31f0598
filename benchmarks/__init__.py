"""`make bench`: the bridge measured against others, side by side; see docs/performance.md."""
