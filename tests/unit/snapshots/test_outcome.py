"""What comes of a run."""

from __future__ import annotations

from tests.unit.snapshots.world import WORLD, Provider, Topic, mention, translate


async def test_an_outcome_is_shown_without_its_records() -> None:
    """An event loop makes a text of what a task returns, and that of a whole snapshot fills the memory."""
    outcome = await translate(Provider(), Topic(), mention(*WORLD.events))
    assert len(outcome.written) > 500
    assert len(repr(outcome)) < 5_000
