"""When a command may own the feed."""

from __future__ import annotations

import pytest

from bridge.config import Settings
from bridge.errors import NotOwner
from bridge.ownership.group import Group, Member
from bridge.repair.ownership import refuse_members


def test_a_feed_with_any_member_is_not_free() -> None:
    owner, standby = Member("1", "vm:1:a", "10.0.0.1", True), Member("2", "vm:2:b", "10.0.0.2", False)
    for group, text in (
        (Group((owner, standby)), "vm:1:a from 10.0.0.1 owns it"),
        (Group((standby,)), "vm:2:b from 10.0.0.2 stands by"),
    ):
        with pytest.raises(NotOwner, match=f"the feed settlement-v4 is not free: {text}"):
            refuse_members(Settings(), group)
    refuse_members(Settings(), Group())
    refuse_members(Settings(), None)
