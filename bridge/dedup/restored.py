"""Takes the records of bets into a deduplicator at a start. Plain Python that mypyc compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bridge.avro.codec import HEADER_BYTES
from bridge.avro.decoder import Decoder
from bridge.dedup.deduplicator import Deduplicator, fingerprint


class Restored:
    """Takes messages with bets, as Kafka has them.

    Those with the first bytes `header` are read here: `versions` reads their settlementVersion alone. All
    others, and those that cannot be read so, are left to `other`. `brought` tells what an unproven replay
    has brought.
    """

    def __init__(
        self,
        deduplicator: Deduplicator,
        header: bytes,
        versions: Decoder,
        brought: Callable[[Any], bool],
        other: Callable[[Any], object],
    ) -> None:
        self._deduplicator: Final = deduplicator
        self._header: Final = header
        self._versions: Final = versions
        self._brought: Final = brought
        self._other: Final = other

    def take(self, message: Any) -> None:
        """Take a message. Raises what `other` raises."""
        key, value = message.key(), message.value()
        if not (isinstance(value, bytes) and value.startswith(self._header)) or not (
            isinstance(key, bytes) and key and key.isascii()
        ):
            self._other(message)
        else:
            try:
                version: int = self._versions.read(value, HEADER_BYTES)["settlementVersion"]
            except ValueError:
                self._other(message)
                return
            at: int = message.timestamp()[1]
            brought = self._brought(message)
            self._deduplicator.publish(key, version, fingerprint(value), at / 1000, brought=brought)
