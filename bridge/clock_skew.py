"""How far the provider's clock is from one of ours, as the `Date` of an answer tells.

The revision is in the provider's time, receipt in ours. `Date` has whole seconds and is written
somewhere between question and answer, so what is learnt is an interval, not a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bridge.errors import ClockError
from bridge.formatting import http_moment

DATE_STEP_SECONDS = 1.0
"""`Date` is cut to it."""


class Skew(NamedTuple):
    """Bounds of the provider's clock less ours, in seconds."""

    low: float
    high: float

    @property
    def seconds(self) -> float:
        """The least skew that explains what was seen: 0 when none is needed."""
        return max(self.low, min(0.0, self.high))

    def by(self, offset: float) -> Skew:
        """The same by a clock of ours that is ahead of this one by so much."""
        return Skew(self.low - offset, self.high - offset)


def from_dates(headers: Iterable[str], asked: float, received: float) -> Skew | None:
    """What the `Date` headers of an answer say; `asked` and `received` are seconds of a clock of ours.

    None for what is no date. There may be several, a proxy's among them: they count only where they agree.
    """
    moments = [http_moment(header) for header in headers]
    dates = [moment for moment in moments if moment is not None]
    if not dates or len(dates) < len(moments) or max(dates) - min(dates) > DATE_STEP_SECONDS:
        return None
    return Skew(min(dates) - received, max(dates) + DATE_STEP_SECONDS - asked)


def must_be_near(seconds: float, limit: float, setting: str, harm: str, *, also: str = "") -> None:
    """Raise ClockError when the provider's clock less ours, in seconds, is beyond the limit.

    `setting` names the limit, `harm` says what comes of such a clock, `also` what is to be raised with it.
    """
    if abs(seconds) > limit:
        side = "ahead of" if seconds > 0 else "behind"
        raise ClockError(
            f"the provider's clock is {abs(seconds):.0f} s {side} ours, and {setting} = {limit:g}: {harm}. "
            "Set this machine's clock right (is NTP running?); if the provider's is wrong, tell them, and "
            f"raise that limit{also} meanwhile."
        )
