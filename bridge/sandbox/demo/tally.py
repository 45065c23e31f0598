"""Keeps count of what was sent and what arrived, as it goes, in memory that does not hold the bets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bridge.sandbox.demo.verify import WriterSchema, differences, identity
from bridge.sandbox.provider.stream import Published


class Tally:
    """Holds each record against the message that it came from.

    `fresh` yields what the provider has published since it was called last.
    """

    def __init__(self, fresh: Callable[[], Iterable[Published]]) -> None:
        self._fresh = fresh
        self._awaited: dict[tuple[str | None, int], Published] = {}
        self._nameless: set[int] = set()
        """Bets without an id, of which dead letters have to come: the hashes of their bytes."""
        self._seen: set[int] = set()
        self._latest: dict[str, int] = {}
        self.sent = 0
        self.published = 0
        self.duplicates = 0
        self.wrong: list[str] = []
        """What is not as it was sent, and bets that went back."""

    @property
    def missing(self) -> int:
        """How many messages have been sent and not arrived, up to the last `catch_up`."""
        return len(self._awaited) + len(self._nameless)

    def catch_up(self) -> None:
        """Learn what the provider has published since."""
        for message in self._fresh():
            key = identity(message.body)
            if key is None:  # no bet: nothing is to come of it
                continue
            self.sent += 1
            if key[0] is None:
                self._nameless.add(hash(message.body))
            else:
                self._awaited[key] = message

    def buried(self, body: bytes) -> None:
        """Take a dead letter."""
        if hash(body) in self._seen:
            self.duplicates += 1
            return
        if hash(body) not in self._nameless:
            self.catch_up()
        if hash(body) in self._nameless:
            self._nameless.remove(hash(body))
            self._seen.add(hash(body))
        else:
            self.wrong.append(f"a dead letter of what has an id, or was never sent: {body[:80]!r}")

    def arrived(self, key: tuple[str, int], record: dict[str, Any], schema: WriterSchema) -> float | None:
        """Take a record of the topic; returns when its message was published, Unix seconds."""
        self.published += 1
        if hash(key) in self._seen:
            self.duplicates += 1
            return None
        if key not in self._awaited:
            self.catch_up()
        message = self._awaited.pop(key, None)
        if message is None:
            self.wrong.append(f"{key[0]} version {key[1]} was never sent")
            return None
        self._seen.add(hash(key))
        self.wrong += [f"{key[0]}: {difference}" for difference in differences(message.body, record, schema)]
        if key[1] < self._latest.get(key[0], key[1]):
            self.wrong.append(f"{key[0]} went back to version {key[1]}")
        self._latest[key[0]] = key[1]
        return message.at
