"""The simulator's stream for tests that read the same messages again and again."""

from __future__ import annotations

from functools import lru_cache

from bridge_sandbox.provider.stream import Published, Stream, StreamSettings
from bridge_sandbox.provider.world.entities import World


@lru_cache(maxsize=8)
def _made(_world: World, _origin: float, _settings: StreamSettings) -> dict[tuple[int, float], Published]:
    """Return the messages made so far of the streams with these arguments."""
    return {}


class CachedStream(Stream):
    """Makes each message once, also for a later stream of the same world, origin and settings."""

    def message(self, slot: int) -> Published:
        """Return the message of a slot."""
        made = _made(self.world, self.origin, self.settings)
        key = slot, self.clock.reading(self.at(slot))
        if key not in made:
            made[key] = super().message(slot)
        return made[key]
