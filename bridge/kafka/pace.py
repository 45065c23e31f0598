"""How many bytes of records one transaction takes, by what Kafka has taken so far (decision 0047). No IO.

The first transaction is small. One that is committed quickly lets the next be twice as large or more, a slow
one half as large; one that could not be delivered in time is written again in much smaller ones. So each fits
into a few seconds, whatever holds it up: a quota, a link, a broker or a replica. What any takes, because the
way is long, does not count: smaller ones would only be more.
"""

from __future__ import annotations

from math import inf

LEAST_BYTES = 8 * 1024
FIRST_BYTES = 128 * 1024
INSTANT_SECONDS = 0.2
"""A commit as short as this may be of four times the size: a catch-up begins at full speed."""
QUICK_SECONDS = 1.5
"""A commit as short as this may be of twice the size."""
SLOW_SECONDS = 5.0
MOST_SECONDS = 10.0
"""Under a quota whose rate is known, none is made larger than takes this long."""
TRY_EACH = 8
"""After so many transactions of a size a larger one is tried."""
WANTED_SECONDS = 2.0
"""The duration that is aimed at where the rate is known."""
SIGN_SECONDS = 5.0
"""For how long a sign of life counts: longer than one call takes."""
LASTS_SECONDS = 30.0
"""For how long Kafka counts as slow after a commit that was not quick: in a quota's window some are."""
_CHANGED = 1.5
"""Factor by which a rate changes before it is told anew."""


class KafkaPace:
    """What Kafka takes. `most` bytes is the limit of the settings; times are monotonic seconds.

    The thread of the writer and the event loop share it.
    """

    def __init__(self, most: int = FIRST_BYTES) -> None:
        self.bytes = min(FIRST_BYTES, most)
        """Limit of the next transaction, as `Batch.bytes` counts."""
        self._most = most
        self._fixed = 0.0
        """Seconds that a transaction takes whatever its size."""
        self._last = 0, 0.0
        """Size and duration of the last one."""
        self._held = 0
        """Full ones in a row that took as long as one may."""
        self._rate: float | None = None
        """Bytes a second that got through when Kafka was last slow."""
        self._told = 0.0
        self._alive_until = self._slow_until = -inf
        self._throttled: dict[int, float] = {}
        """Broker → when its quota lets it answer again."""

    def on_throttle(self, broker: int, seconds: float, now: float) -> None:
        """Take a broker's word that it answers nothing for so long, because of a quota.

        A coordinator, whose number is negative here, is one of the brokers, and may be another one's word.
        """
        self._throttled[broker] = now + seconds
        if seconds > QUICK_SECONDS:
            self._slow_until = now + seconds + LASTS_SECONDS

    def alive(self, now: float) -> None:
        """Take note that records get through, though it takes long."""
        self._alive_until = now + SIGN_SECONDS
        self._slow_until = max(self._slow_until, self._alive_until)

    def throttled(self, now: float) -> bool:
        """Whether a broker has said that it does not answer yet; what it holds back comes a moment later."""
        return any(until + SIGN_SECONDS > now for until in self._throttled.values())

    def moves(self, now: float) -> bool:
        """Whether records get through, or a broker has said when some will."""
        return self._alive_until > now or self.throttled(now)

    def took(self, size: int, seconds: float, now: float) -> None:
        """Take note of the commit of a transaction of this size."""
        self._learn(size, seconds)
        by_size, is_full = seconds - self._fixed, 2 * size >= self.bytes
        # Under a quota a broker takes at once what it then holds back for: a quick commit is no sign there.
        is_owed = any(until > now + QUICK_SECONDS for until in self._throttled.values())
        if by_size > SLOW_SECONDS and self.bytes > LEAST_BYTES:
            self._shrink(min(self.bytes, max(size, FIRST_BYTES)) // 2)
        elif is_full:
            self._held = 0 if by_size < QUICK_SECONDS and not is_owed else self._held + 1
            # Whether it is the size that takes so long, only another one shows.
            tried = self._held % TRY_EACH == (0 if is_owed else 1)
            if not self._held or tried or (self.bytes <= LEAST_BYTES and not is_owed):
                larger = min((2 if seconds > INSTANT_SECONDS else 4) * self.bytes, self._most)
                if self.throttled(now) and (rate := self.slow_rate(now)):
                    larger = min(larger, int(MOST_SECONDS * rate))
                self.bytes = max(self.bytes, larger)
        if seconds > QUICK_SECONDS:
            self._is_slow(size / seconds, now)

    def _learn(self, size: int, seconds: float) -> None:
        """Learn from two transactions of different sizes what any takes: the round trips of a long way."""
        before, took = self._last
        if before and not before < 1.5 * size < 2.25 * before:
            fixed = (took * size - seconds * before) / (size - before)
            self._fixed = max(0.0, min(fixed, seconds, took))
        self._last = size, seconds

    def gave_up(self, size: int, delivered: float, seconds: float, now: float) -> None:
        """Take note that only this share of a transaction was delivered within so long, and all is void."""
        rate = size * delivered / seconds
        self._shrink(min(size // 4, int(rate * WANTED_SECONDS) or size))
        self._is_slow(rate, now)

    def slow_rate(self, now: float) -> float | None:
        """Return how many bytes a second get through while Kafka is slow, None if it is not."""
        return self._rate if self._slow_until > now else None

    def reason(self, now: float) -> str:
        """Return what Kafka is slow for, and how slow; "" if it is not, or gives no sign at all."""
        if self._slow_until <= now:
            return ""
        rate = self._rate or 0.0
        if not self._told / _CHANGED < rate < self._told * _CHANGED:
            self._told = rate
        taken = f": {float(f'{self._told / 1000:.2g}'):g} kB/s get through" if self._told else ""
        if self._fixed > QUICK_SECONDS:
            taken += f", a transaction takes {self._fixed:.0f} s whatever its size"
        recent = {broker for broker, until in self._throttled.items() if until + LASTS_SECONDS > now}
        if brokers := sorted(broker for broker in recent if broker >= 0):
            return f"throttled by a quota of broker {', '.join(map(str, brokers))}{taken}"
        return f"Kafka is slow: a link, a broker or a replica{taken}"

    def _shrink(self, to: int) -> None:
        self.bytes = max(min(to, self.bytes), min(LEAST_BYTES, self._most))

    def _is_slow(self, rate: float, now: float) -> None:
        known = self.slow_rate(now)
        self._rate = rate if known is None else (2 * known + rate) / 3
        self._slow_until = max(self._slow_until, now + LASTS_SECONDS)
