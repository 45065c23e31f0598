"""Settings of a program in this process, at a place whose topics exist."""

from __future__ import annotations

from bridge.config import Settings
from bridge.kafka import clients
from bridge.records import topics
from tests.harness import Place
from tests.integration.snapshots import settings_at


def settings_of(place: Place) -> Settings:
    """Settings with a short session, and readers that receive the end of a partition at once."""
    fast = {"session_timeout_ms": 3000, "heartbeat_interval_ms": 500, "fetch_wait_max_ms": 20}
    return settings_at(place, fast)


def prepared(place: Place) -> Settings:
    """Settings of the place, after its topics were created."""
    settings = settings_of(place)
    topics.ensure(clients.admin(settings.kafka), settings, topics.Topics.all)
    return settings
