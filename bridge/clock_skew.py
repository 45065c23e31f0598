"""Estimates the skew between the provider's clock and ours from the `Date` headers of a response.

The revision is in the provider's time, receipt in ours. `Date` has whole seconds and is written some time
between request and response, so the result is an interval.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bridge.errors import ClockError
from bridge.formatting import format_duration, parse_http_date

DATE_STEP_SECONDS = 1.0
"""Resolution of `Date`, which is rounded down."""


class Skew(NamedTuple):
    """Bounds of the provider's clock minus ours, in seconds."""

    low: float
    high: float

    @property
    def seconds(self) -> float:
        """The smallest skew within the bounds: 0 if they allow it."""
        return max(self.low, min(0.0, self.high))

    def by(self, offset: float) -> Skew:
        """Return the skew of a clock of ours that is ahead of this one by `offset`."""
        return Skew(self.low - offset, self.high - offset)


def from_dates(headers: Iterable[str], asked: float, received: float) -> Skew | None:
    """Return the skew by the `Date` headers of a response; `asked` and `received` are seconds of our clock.

    None without a valid date. Several headers, such as a proxy's, count only if they agree.
    """
    moments = [parse_http_date(header) for header in headers]
    dates = [moment for moment in moments if moment is not None]
    if not dates or len(dates) < len(moments) or max(dates) - min(dates) > DATE_STEP_SECONDS:
        return None
    return Skew(min(dates) - received, max(dates) + DATE_STEP_SECONDS - asked)


def must_be_near(seconds: float, limit: float, setting: str, harm: str, *, also: str = "") -> None:
    """Raise ClockError if the provider's clock minus ours, in seconds, exceeds the limit.

    `setting` names the limit, `harm` the consequence, `also` another setting to raise with it.
    """
    if abs(seconds) > limit:
        by = f"{format_duration(abs(seconds))} {'ahead of' if seconds > 0 else 'behind'}"
        raise ClockError(
            f"the provider's clock is {by} ours, and {setting} = {limit:g}: {harm}. Correct this machine's "
            "clock (is NTP running?); if the provider's is wrong, tell them, and "
            f"raise that limit{also} until it is fixed."
        )
