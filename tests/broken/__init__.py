"""Broken bridges: deliberate faults in copies of the bridge, each of which the judge must find."""
