"""When a soak is over, and what it says about leaks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.test_soak import lacking, needless
from tests.soak.course import QUANTITIES, rising, unknown


def minutes(number: int = 60) -> list[dict[str, Any]]:
    """Samples in which nothing grows. The owner changes every ten minutes."""

    def taken(*, owner: bool) -> dict[str, Any]:
        of_owner = {"entries": 100.0, "commit_ms": 20.0} if owner else {}
        return {"owner": owner, "rss_mb": 100.0, "descriptors": 20, "threads": 9, **of_owner}

    return [
        {"minute": m, "A": taken(owner=m // 10 % 2 == 0), "B": taken(owner=m // 10 % 2 == 1)}
        for m in range(1, number + 1)
    ]


@pytest.mark.parametrize(("last", "is_flat"), [(104.9, True), (105.1, False)])
def test_memory_is_flat_up_to_a_twentieth(last: float, is_flat: bool) -> None:
    samples = minutes()
    for sample in samples[:20]:
        sample["A"]["rss_mb"] = 1.0
    for sample in samples[40:]:
        if sample["A"]["owner"]:
            sample["A"]["rss_mb"] = last
    assert rising(samples) == ([] if is_flat else [f"resident memory of A as owner: 100 → {last:g} MB"])


def test_what_each_term_leaves_behind_is_found() -> None:
    samples, name = minutes(), "descriptors"
    for sample in samples[41:55]:
        sample["B"][name] += 9
    assert rising(samples) == []
    for sample in samples:
        sample["B"][name] += sample["minute"] // 20  # a term of B has ended
    assert [it.split(":")[0] for it in rising(samples)] == [
        f"{name} of B as {it}" for it in ("owner", "standby")
    ]


def test_what_was_not_measured_is_not_known_to_be_flat() -> None:
    samples = minutes()
    assert unknown(samples) == []
    for sample in samples[40:]:
        sample["B"] = {**samples[0]["B"], "owner": False}
    assert len(unknown(samples)) == len(QUANTITIES)
    assert all(it.endswith(" of B as owner") for it in unknown(samples))
    assert rising(samples) == []


def test_a_soak_without_hand_overs_shows_nothing() -> None:
    enough = {"samples": minutes(67), "rebalances": 5, "connections": 33}
    assert lacking(enough) == []
    assert lacking({**enough, "rebalances": 4}) == ["4 rebalances of 5"]
    assert lacking({**enough, "connections": 32}) == ["32 connections of 33"]


def test_attempts_that_nobody_had_caused_are_counted() -> None:
    for attempts, count in ((0, 0), (68, 0), (70, 2)):
        assert needless({"drops": 60, "rebalances": 5, "figures": {"attempts": attempts}}) == count
