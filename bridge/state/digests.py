"""The hash by which contents of a bet are compared.

A content is compared only with other contents of the same version of the same bet, so the hash need not be a
cryptographic one: two contents that differ have the same hash once in 3·10³⁸ comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from xxhash import xxh3_128_digest

content_digest: Final[Callable[[bytes], bytes]] = xxh3_128_digest
"""Returns the 16 bytes of a content's hash."""
