"""What the bridge shows over HTTP."""
