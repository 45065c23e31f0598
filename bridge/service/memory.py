"""Limits the memory that glibc keeps, and gives back what a term of ownership has left (decision 0009)."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from typing import Final

_LIBC: Final = ctypes.CDLL(None)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
KEPT_BYTES = 16 * 1024 * 1024
"""Free memory that the process keeps, approximately."""
LARGE_BLOCK_BYTES = 1024 * 1024
"""Larger blocks return to the system as soon as they are freed."""
HEAPS = 2
"""For all threads. Each of librdkafka's would have its own, up to eight a processor."""


def limit_heaps() -> None:
    """Limit what glibc keeps: by default up to 64 MiB after a large message, and fragments beyond that."""
    with contextlib.suppress(AttributeError):  # another C library
        _LIBC.mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        _LIBC.mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        _LIBC.mallopt(_M_ARENA_MAX, HEAPS)


def release_free_memory() -> None:
    """Give back what a lost term has left behind.

    Its parts refer to each other (decision 0009), and of a heap glibc gives back its end only.
    """
    gc.collect()
    with contextlib.suppress(AttributeError):  # another C library
        _LIBC.malloc_trim(0)
