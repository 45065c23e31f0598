"""From which position and with which attempts a feed goes on when another one is retired."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.errors import SettingsError
from bridge.feed.rate_limits import Attempt
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.repair.retirement import hand_over

NOW = 1_790_000_000
FIRST, SHARED, LAST = (Attempt(NOW - ago, 60, initial=False) for ago in (900, 300, 60))
OWN = Checkpoint("a", NOW - 432_000, State.LIVE, (FIRST, SHARED), Counters(9, pings=9), NOW - 432_000.0, "x")
OLD = Checkpoint("b", NOW - 90, State.LIVE, (SHARED, LAST), Counters(5, pings=5), NOW - 60.0, "y")
ALL = (FIRST, SHARED, LAST)


def test_a_new_name_takes_over_position_and_attempts() -> None:
    found = hand_over("a", None, OLD, NOW, "me")
    assert found.checkpoint == replace(OLD, feed="a", counters=Counters(), updated_at=NOW, owner="me")
    assert found.text == "a goes on from the position of b, 2026-09-21T14:11:50Z"
    found = hand_over("a", OWN, OLD, NOW, "me", is_over=True)
    assert (found.checkpoint.revision, found.checkpoint.ledger) == (OLD.revision, OLD.ledger)
    assert found.checkpoint.counters == OWN.counters
    assert found.text.endswith("14:11:50Z, 4d 23h later than its own")


def test_a_feed_that_has_received_nothing_takes_over_too() -> None:
    found = hand_over("a", replace(OWN, counters=Counters()), OLD, NOW, "me")
    assert (found.checkpoint.revision, found.checkpoint.ledger) == (OLD.revision, ALL)


@pytest.mark.parametrize(
    "old", [replace(OLD, updated_at=OWN.updated_at - 1), replace(OLD, counters=Counters())]
)
def test_a_feed_that_ran_last_keeps_its_position(old: Checkpoint) -> None:
    found = hand_over("a", OWN, old, NOW, "me")
    assert found.checkpoint == replace(OWN, ledger=ALL, updated_at=NOW, owner="me")
    assert found.text.endswith("its own position, 2026-09-16T14:13:20Z, 4d 23h earlier than that of b")


def test_which_position_counts_is_asked_if_only_an_operator_knows() -> None:
    with pytest.raises(SettingsError, match=r"--position b\b.*--position a\b"):
        hand_over("a", OWN, OLD, NOW, "me")
    assert hand_over("a", OWN, OLD, NOW, "me", position="b").checkpoint.revision == OLD.revision
    assert hand_over("a", OWN, OLD, NOW, "me", position="a").checkpoint.revision == OWN.revision
    for own, position in ((OWN, "c"), (None, "a")):
        with pytest.raises(SettingsError, match="--position"):
            hand_over("a", own, OLD, NOW, "me", position=position)


def test_no_checkpoint_is_older_than_the_one_it_replaces() -> None:
    assert hand_over("a", OWN, OLD, NOW - 864_000, "me", position="a").checkpoint.updated_at == OLD.updated_at
    ahead = replace(OWN, updated_at=NOW + 60.0)
    assert hand_over("a", ahead, OLD, NOW, "me").checkpoint.updated_at == NOW + 60
