"""Whether one id is another, as far as there is evidence."""

from __future__ import annotations

from bridge.snapshots.results import IdComparison


def test_an_id_of_0_is_no_evidence() -> None:
    """The bet has none, then, and proves nothing."""
    verdict = IdComparison("countryId", "region's id")
    verdict.see(1, 0, 7)
    assert verdict.seen == 0


def test_it_is_confirmed_by_all() -> None:
    """And says by how many."""
    verdict = IdComparison("countryId", "region's id")
    verdict.see(1, 7, 7)
    verdict.see(2, 8, 8)
    assert str(verdict) == "countryId is the region's id in all 2 events of this run"


def test_it_is_refuted_by_one() -> None:
    """With the first example."""
    verdict = IdComparison("countryId", "region's id")
    verdict.see(1, 7, 7)
    verdict.see(2, 8, 9)
    verdict.see(3, 8, 10)
    assert str(verdict) == (
        "countryId is NOT the region's id in 2 of 3 events (event 2: countryId 8, region's id 9)"
    )
