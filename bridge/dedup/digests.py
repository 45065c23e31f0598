"""The hashes by which the deduplicator tells bets and their contents apart: 128 bits each, in memory only.

Of n values that differ, two have the same hash with a probability of n² ÷ 7·10³⁸: 3·10⁻²⁵ for 15 million
bets. The hash of a betId has a seed that no one knows, so no one can choose ids that collide. A content is
compared only with other contents of the same version of the same bet.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from xxhash import xxh3_128_digest

content_digest: Final[Callable[[bytes], bytes]] = xxh3_128_digest
"""Returns the 16 bytes of a content's hash."""

bet_digest: Final[Callable[[bytes, int], bytes]] = xxh3_128_digest
"""Returns the 16 bytes of a betId's hash, given a seed of 64 bits."""
SEED: Final = secrets.randbits(64)
"""Another one in each process."""
