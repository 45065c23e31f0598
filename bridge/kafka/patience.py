"""How long this process waits for an answer of Kafka (decision 0047).

Time-outs are short, because a client may never get an answer that another one gets at once. Where the way is
long, none would come in time: a connection and a request take five round trips. So all time-outs grow while
answers are missing, and shrink when they come early.
"""

from __future__ import annotations

from typing import Final

CALL_SECONDS: Final = 2.0
"""Time-out of a call of the transactional producer, the shortest of all."""
ASK_SECONDS: Final = 3.0
"""Time-out of a request that is repeated while Kafka is unavailable."""
AT_ONCE_SECONDS: Final = 0.001
MOST: Final = 4.0
EARLY: Final = 0.2
"""The share of the shortest time-out within which an answer is early."""


class Patience:
    """The factor of all time-outs. Threads share it."""

    def __init__(self) -> None:
        self.factor = 1.0

    def ran_out(self) -> None:
        """Take note that no answer came in time."""
        self.factor = min(MOST, 2 * self.factor)

    def unanswered(self, seconds: float) -> None:
        """Take note of a request that was given up after these seconds."""
        if seconds > 0.9 * CALL_SECONDS * self.factor:  # otherwise nobody took it
            self.ran_out()

    def answered(self, seconds: float) -> None:
        """Take note of an answer after these seconds; what returned at once needed none."""
        if AT_ONCE_SECONDS < seconds < EARLY * CALL_SECONDS * self.factor:
            self.factor = max(1.0, self.factor / 2)


patience: Final = Patience()
"""That of this process."""
