"""x"""
import os
import pytest
from tests.blast import target, line
from tests.bombs import BOMBS

@pytest.mark.parametrize("converter", os.environ.get("CONV", "pydantic compiled").split())
async def test_bombs(place, converter):
    """x."""
    only = os.environ.get("ONLY")
    async with target(place, FEED__CONVERTER=converter) as t:
        for bomb in BOMBS:
            if only and only not in bomb.name: continue
            d = await t.throw(bomb)
            ok = (d.letters == bomb.letters, d.published == bomb.published)
            print(f"{bomb.name:60} {d.wire:11,} {d.peak:7.0f} MiB {d.held:7.0f} ms {d.letters} {d.published} conn {d.connections} {ok if ok != (True, True) else ''}", flush=True)
