"""Whom a standby waits for, and until when, by exact times."""

from __future__ import annotations

import pytest

from bridge.clock import Instant
from bridge.ownership.group import Group, Member, StandbyWait, WaitEstimate

START = 1_790_000_000.0
SESSION = 10.0


def at(seconds: float) -> Instant:
    """So long after the start; the wall clock and the monotonic one are far apart."""
    return Instant(START + seconds, 50.0 + seconds)


def group(*names: str, joining: bool = False) -> Group:
    """Members by name; `+` behind it means that it holds the partition."""
    members = (
        Member(f"id of {name.rstrip('+')}", name.rstrip("+"), "h", name.endswith("+")) for name in names
    )
    return Group(tuple(members), joining)


def clock(seconds: int) -> str:
    """As it is written in a reason."""
    return f"2026-09-21T14:13:{20 + seconds:02d}Z"


@pytest.mark.parametrize(
    "there", [group(), group("me"), group("me", joining=True), group("me+"), group("me+", "a")]
)
def test_nobody_is_waited_for_where_nobody_stands_in_front(there: Group) -> None:
    assert StandbyWait("me", SESSION).estimate(there, at(0)) == WaitEstimate()


def test_a_dead_owner_is_waited_for_until_its_session_ends() -> None:
    standby = StandbyWait("me", SESSION)
    expected = WaitEstimate(f"waits for a; if it is dead, its place is free by {clock(11)}", START + 11)
    assert standby.estimate(group("a+"), at(0.5)) == expected
    assert standby.estimate(group("a+", "me", joining=True), at(2.5)) == expected
    assert standby.estimate(group("a+", "me", joining=True), at(10.4)) == expected
    assert standby.estimate(group("me+"), at(12)) == WaitEstimate()


def test_an_owner_that_is_there_after_a_session_is_alive() -> None:
    standby = StandbyWait("me", SESSION)
    standby.estimate(group("a+", "me", joining=True), at(0))
    assert standby.estimate(group("a+", "me"), at(2)).until == START + 12
    assert standby.estimate(group("a+", "me"), at(11.9)).until == START + 12
    assert standby.estimate(group("a+", "me"), at(12)) == WaitEstimate("a owns the feed")
    assert standby.estimate(group("a+", "me"), at(1_000)) == WaitEstimate("a owns the feed")


def test_a_newcomer_puts_all_in_doubt_again() -> None:
    standby = StandbyWait("me", SESSION)
    standby.estimate(group("a+", "me"), at(0))
    assert standby.estimate(group("a+", "me"), at(10)).until is None
    assert standby.estimate(group("a+", "b", "me", joining=True), at(20)).until == START + 30


def test_members_without_an_owner_are_all_waited_for() -> None:
    standby = StandbyWait("me", SESSION)
    found = standby.estimate(group("b", "a", "me", joining=True), at(0))
    assert found == WaitEstimate(
        f"waits for a, b; the places of those that are dead are free by {clock(20)}", START + 20
    )
    assert standby.estimate(group("b", "a", "me"), at(5)).until == START + 15
    assert standby.estimate(group("a", "me"), at(8)).until == START + 18
    assert standby.estimate(group("me+"), at(18)) == WaitEstimate()


def test_who_was_dead_before_a_rebalance_began_is_out_no_later() -> None:
    standby = StandbyWait("me", SESSION)
    assert standby.estimate(group("a", "b"), at(0)).until == START + 10
    assert standby.estimate(group("a", "b", "me", joining=True), at(2)).until == START + 10


def test_a_loop_of_crashes_is_seen_through() -> None:
    """As seen on a broker: kills four seconds apart, a session of ten, and what the last one reports."""
    standby = StandbyWait("last", SESSION)
    assert standby.estimate(group("3", "4", "5", "last", joining=True), at(0.2)).until == START + 21
    assert standby.estimate(group("4", "5", "last"), at(2.2)).until == START + 13  # they went at 12.2
    assert standby.estimate(group("last+"), at(12.2)) == WaitEstimate()


def test_a_group_that_does_not_settle_is_reported() -> None:
    standby = StandbyWait("me", SESSION)
    standby.estimate(group("a", "me"), at(0))
    assert standby.estimate(group("a", "me"), at(10)) == WaitEstimate("waits for the group to settle, with a")


def test_a_step_of_the_wall_clock_ends_no_wait() -> None:
    standby = StandbyWait("me", SESSION)
    standby.estimate(group("a+", "me"), at(0))
    assert standby.estimate(group("a+", "me"), Instant(START + 3_600, 55.0)).until == START + 10


def test_the_last_owner_is_who_a_rebalance_waits_for() -> None:
    assert [m.name for m in group("a", "b", joining=True).awaited("b")] == ["b"]
    assert [m.name for m in group("a+", "b", joining=True).awaited("b")] == ["a"]
    assert [m.name for m in group("a", "b", joining=True).awaited("gone")] == ["a", "b"]
    found = group("a+", "b", "c")
    assert (found.owner_hosts, found.standbys) == (["h"], 2)
