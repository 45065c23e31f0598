"""What a round sets, and in which order it ends."""

from __future__ import annotations

from bridge.config import Settings
from bridge.kafka.topics import declare
from tests.storm.round import SMALL


def test_only_what_may_be_compacted_within_a_round_has_an_eager_cleaner() -> None:
    """Elsewhere its settings would do nothing: the bridge keeps bets for days, and dead letters for ever."""
    for topic, settings in SMALL.items():
        config = getattr(declare(Settings()), topic).config
        may_be = config["cleanup.policy"] == "compact" and "min.compaction.lag.ms" not in config
        assert ("min.cleanable.dirty.ratio" in settings) == may_be, topic
