"""What `bridge run` refuses to start with."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bridge.config import FeedSettings, KafkaSettings, RegistrySettings, Settings
from bridge.errors import SettingsError
from bridge.kafka import clients
from bridge.kafka.election import LeaderElection
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.group import Group, Member
from bridge.service import app

NOWHERE = "127.0.0.1:1"


def test_what_a_connection_will_need_is_checked_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a standby would pass for ready, and fail when it is needed."""
    monkeypatch.setattr(app, "_Service", lambda _: pytest.fail("it starts"))
    feed = FeedSettings(base_url=f"http://{NOWHERE}", auth="bearer", auth_value_file=tmp_path / "none")
    kafka, registry = KafkaSettings(bootstrap_servers=NOWHERE), RegistrySettings(url=f"http://{NOWHERE}")
    with pytest.raises(SettingsError, match=r"BRIDGE_FEED__AUTH_VALUE_FILE: cannot read"):
        app.run(Settings(feed=feed, kafka=kafka, registry=registry))


async def test_a_standby_for_whom_no_client_can_be_made_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that Kafka's settings name may be away; the report is that Kafka is."""
    made: list[KafkaSettings] = []

    class Unseen(LeaderElection):
        """It lacks the right to see who is in the group."""

        def __init__(self) -> None:
            """A member of none."""

        def look(self, _client: object) -> None:
            service._changed.set()

    service = app._Service(Settings(feed=FeedSettings(base_url=f"http://{NOWHERE}")))

    def admin(settings: KafkaSettings) -> object:
        made.append(settings)
        if len(made) < 3:
            raise KafkaUnavailable("a file is away")
        return object()

    monkeypatch.setattr(app, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(clients, "admin", admin)
    with capture_logs() as logged:
        await service._stand_by(Unseen())
    assert [line.get("reason", "") for line in logged] == ["a file is away", ""]
    assert len(made) == 3


async def test_a_standby_that_may_not_see_the_group_does_not_repeat_what_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By when a place is free is shown for as long as Kafka says who is in the group."""
    looks: list[Group | None] = [Group((Member("1", "a", "h", True),)), None, None]

    class Forgetful(LeaderElection):
        """It is reported once."""

        def __init__(self) -> None:
            """A member of none."""

        def look(self, _client: object) -> Group | None:
            if len(looks) == 1:
                service._changed.set()
            return looks.pop(0)

    service = app._Service(Settings(feed=FeedSettings(base_url=f"http://{NOWHERE}")))
    monkeypatch.setattr(app, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(clients, "admin", lambda _: object())
    with capture_logs() as logged:
        await service._stand_by(Forgetful())
    assert ["waits for a" in line.get("reason", "") for line in logged] == [True, False]
    assert service._status.until is None
