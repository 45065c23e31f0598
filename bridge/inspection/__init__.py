"""Reads what the bridge has written to its topics, for the commands that show, export or copy it."""
