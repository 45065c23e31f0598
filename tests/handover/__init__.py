"""Hand-overs: how long consumers see no new bet when the owner changes."""
