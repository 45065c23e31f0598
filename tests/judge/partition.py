"""The partition of a key, as Java's clients choose it: murmur2 of the key, without its sign."""

from __future__ import annotations

_SEED, _FACTOR, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key among so many."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash, unsigned."""
    hash_ = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> 24) * _FACTOR & _MASK
        hash_ = (hash_ * _FACTOR & _MASK) ^ word
    if whole < len(data):
        hash_ = (hash_ ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    hash_ = (hash_ ^ hash_ >> 13) * _FACTOR & _MASK
    return hash_ ^ hash_ >> 15
