"""The partition of a key, as Java's clients and librdkafka's `murmur2_random` choose it."""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le
from mypy_extensions import i64  # a machine integer once compiled, a plain one until then

_MASK: Final = 0xFFFFFFFF
_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key in a topic with this many partitions."""
    return int(_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(data: bytes) -> i64:
    size: i64 = len(data)
    whole: i64 = size & ~3
    found: i64 = _SEED ^ size
    at: i64 = 0
    while at < whole:
        word = i64(read_i32_le(data, at))
        k = _times(word & _MASK)
        found = _times(found) ^ _times(k ^ (k >> 24))
        at += 4
    if whole < size:
        found = _times(found ^ _little_endian(data, whole, size))
    found = _times(found ^ (found >> 13))
    return found ^ (found >> 15)


def _times(number: i64) -> i64:
    """Multiply by `_M` in 32 bits; the whole product could overflow a machine integer."""
    high: i64 = number >> 16
    return ((number & 0xFFFF) * _M + ((high * _M & 0xFFFF) << 16)) & _MASK


def _little_endian(data: bytes, start: i64, end: i64) -> i64:
    found: i64 = 0
    while end > start:
        end -= 1
        found = (found << 8) | data[end]
    return found
