"""The table of faults."""

from __future__ import annotations

from tests.broken import of_feed, of_messages, of_transactions

FAULTS = {it.name: it for it in (*of_transactions.FAULTS, *of_messages.FAULTS, *of_feed.FAULTS)}
"""By name."""
