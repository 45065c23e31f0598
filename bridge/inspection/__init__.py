"""Reads what the bridge has written to its topics, for the commands that show, export or copy it.

A module for what a person asks: `explain` one bet, `dead_letters`, `gaps`, `limits`, `replay` with its
`formats`, files (`export`) and topics (`copying`).
"""
