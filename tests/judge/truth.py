"""The rows of what the provider published: made by another process, for it takes as long as the topics."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.judge.buckets import Buckets
from tests.judge.messages import Kind, content, read
from tests.judge.provider import Provider

_HEAD_BYTES = 64 * 1024
"""What is kept of a message that is too large."""


def put_truth(
    control_url: str, since: float, until: float, most: int, directory: Path, expected: int
) -> None:
    """Put a row for each message between two moments, and another for each bet; `most` bytes make one.

    Rows of bets: version, content, when and which message. Of messages: whether it must be a dead letter,
    its size, the SHA-256 of what is kept of it, when and which message. Raises OSError.
    """
    with Buckets(directory, expected) as buckets:
        for at, seq, sha256, body in Provider(control_url).truth(since, until):
            kind, bet = read(body, most)
            if kind is Kind.BET:
                buckets.put(f"bet {bet['betId']}", (bet["settlementVersion"], content(bet), at, seq))
            kept = hashlib.sha256(body[:_HEAD_BYTES]).hexdigest() if len(body) > most else sha256
            buckets.put(f"letter {sha256}", (kind is Kind.LETTER, len(body), kept, at, seq))
