"""Broken bridges: deliberate faults of the bridge, each of which the judge must find."""
