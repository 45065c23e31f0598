"""Reads what the bridge has written to its topics: a module for what a person asks of them."""
