"""The topics as they are declared, and what is done about those that differ."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation, AdminClient
from structlog.testing import capture_logs

from bridge.config import FeedSettings, Settings, TopicsSettings
from bridge.errors import SinkBroken, TopologyError
from bridge.records.topics import CLEANED_SOON, DAY_MS, Action, Change, Topics, apply, declare, ensure, plan

TOPICS = declare(Settings())


@dataclass
class Cluster:
    """As much of a cluster as planning looks at: what is there, and how it is set."""

    partitions: dict[str, int]
    configs: dict[str, dict[str, str]]
    created: list[str] = field(default_factory=list)
    refusal: int = KafkaError.UNKNOWN_TOPIC_OR_PART
    allowed: list[AclOperation] | None = None
    """On every topic; None if it does not tell."""
    late: int = 0
    """How many lists are still without the new topics."""
    policy: Callable[[dict[str, str]], bool] = lambda config: True
    """Whether a topic may have such settings."""
    clamps: bool = False
    """Whether segments keep their size, whatever is asked for."""

    def poll(self, timeout: float) -> int:
        return 0

    def list_topics(self, timeout: float) -> Any:
        counts = self.partitions | (dict.fromkeys(self.created, 1) if self.late <= 0 else {})
        self.late -= bool(self.created)
        topics = {name: SimpleNamespace(partitions=dict.fromkeys(range(n))) for name, n in counts.items()}
        return SimpleNamespace(topics=topics, brokers={1: None})

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        return {
            r: done({k: SimpleNamespace(value=v) for k, v in self.configs[r.name].items()}) for r in resources
        }

    def describe_topics(
        self, asked: Any, request_timeout: float, include_authorized_operations: bool = False
    ) -> dict[str, Future[Any]]:
        """Of those that are missing; the rights on others."""
        if include_authorized_operations:
            return {
                name: done(SimpleNamespace(authorized_operations=self.allowed)) for name in asked.topic_names
            }
        missing: Future[Any] = Future()
        missing.set_exception(KafkaException(KafkaError(self.refusal)))
        return {"topic": missing}

    def create_topics(
        self, topics: list[Any], request_timeout: float, validate_only: bool
    ) -> dict[Any, Future[Any]]:
        return {t.topic: self._set(t.topic, t.config, validate_only, is_new=True) for t in topics}

    def incremental_alter_configs(
        self, resources: list[Any], request_timeout: float, validate_only: bool
    ) -> dict[Any, Future[Any]]:
        return {
            r: self._set(r.name, {e.name: e.value for e in r.incremental_configs}, validate_only)
            for r in resources
        }

    def _set(
        self, name: str, config: dict[str, str], validate_only: bool, is_new: bool = False
    ) -> Future[Any]:
        if not self.policy(config):
            refused: Future[Any] = Future()
            refused.set_exception(KafkaException(KafkaError(KafkaError.POLICY_VIOLATION)))
            return refused
        if not validate_only:
            self.created += [name] if is_new else []
            self.configs[name] = {} if is_new else self.configs[name]
            self.configs[name] |= config | ({"segment.bytes": "52428800"} if self.clamps else {})
        return done(None)


def done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def cluster(**changes: dict[str, str] | int | None) -> Cluster:
    """A cluster as declared, but for a topic's other settings, its number of partitions, or its absence."""
    made = Cluster(
        {t.name: t.partitions for t in TOPICS.all()}, {t.name: dict(t.config) for t in TOPICS.all()}
    )
    for topic, change in changes.items():
        name = f"settlement.{topic}"
        if change is None:
            del made.partitions[name]
        elif isinstance(change, int):
            made.partitions[name] = change
        else:
            made.configs[name] |= change
    return made


def planned(made: Cluster) -> list[Change]:
    return plan(cast(AdminClient, made), TOPICS)


def test_a_topic_that_may_not_be_seen_is_not_taken_for_a_missing_one() -> None:
    made = cluster(gaps=None)
    made.refusal = KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(TopologyError, match=r"no right to Describe the topic settlement\.gaps;"):
        planned(made)


def test_bets_are_compacted_and_every_version_stays_for_a_week() -> None:
    config = TOPICS.bets.config
    assert config["cleanup.policy"] == TOPICS.checkpoints.config["cleanup.policy"] == "compact"
    assert config["min.compaction.lag.ms"] == str(7 * DAY_MS)
    assert int(config["max.message.bytes"]) > FeedSettings().max_message_bytes


def test_the_settings_shape_the_topics_and_checkpoints_are_in_one_partition() -> None:
    shape = TopicsSettings(prefix="p", partitions=12, min_compaction_lag_days=4.5)
    topics = declare(Settings(feed=FeedSettings(max_message_bytes=1000), topics=shape))
    several = {"p.bets": 12, "p.deadletters": 12, "p.translations": 12}
    single = ("p.checkpoints", "p.gaps", "p.snapshots", "p.snapshot-state", "p.currencies")
    assert {t.name: t.partitions for t in topics.all()} == several | dict.fromkeys(single, 1)
    assert topics.bets.config["max.message.bytes"] == str(1000 + 1024 * 1024)
    assert topics.bets.config["min.compaction.lag.ms"] == "388800000"


@pytest.mark.parametrize("topic", [TOPICS.deadletters, TOPICS.gaps])
def test_dead_letters_and_gaps_are_kept_for_ever(topic: Any) -> None:
    kept = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    assert kept.items() <= topic.config.items()


def test_nothing_is_done_about_topics_that_are_as_declared() -> None:
    assert planned(cluster()) == []
    assert (
        planned(cluster(bets={"min.compaction.lag.ms": str(30 * DAY_MS), "max.message.bytes": "2000000000"}))
        == []
    )


@pytest.mark.parametrize(
    ("topic", "config", "harmful"),
    [
        ("bets", {"cleanup.policy": "delete"}, True),
        ("bets", {"min.compaction.lag.ms": "0"}, True),
        ("bets", {"max.message.bytes": "1048588"}, True),
        ("checkpoints", {"cleanup.policy": "delete"}, True),
        ("translations", {"min.compaction.lag.ms": "0"}, False),
        ("deadletters", {"cleanup.policy": "compact"}, True),
        ("deadletters", {"retention.ms": "604800000"}, True),
        ("gaps", {"retention.ms": "604800000"}, True),
        ("gaps", {"retention.bytes": "1073741824"}, True),
        ("gaps", {"cleanup.policy": "compact"}, True),
        ("bets", {"message.timestamp.type": "LogAppendTime"}, True),
        ("deadletters", {"message.timestamp.type": "LogAppendTime"}, True),
    ],
)
def test_a_setting_that_differs_is_altered(topic: str, config: dict[str, str], harmful: bool) -> None:
    [change] = planned(cluster(**{topic: config}))
    [name] = config
    assert (change.topic.name, change.action, change.harmful) == (
        f"settlement.{topic}",
        Action.ALTER,
        harmful,
    )
    assert change.config == {name: change.topic.config[name]}
    assert change.detail == f"{name} is {config[name]}, must be {change.topic.config[name]}"


@pytest.mark.parametrize(
    ("topic", "name", "least", "harmful"),
    [
        ("bets", "segment.bytes", 9 * 1024 * 1024, True),
        ("deadletters", "segment.bytes", 9 * 1024 * 1024, True),
        ("bets", "message.timestamp.before.max.ms", 4 * DAY_MS, False),
        ("checkpoints", "message.timestamp.before.max.ms", 4 * DAY_MS, False),
        ("gaps", "message.timestamp.after.max.ms", 3_600_000, False),
    ],
)
def test_what_a_broker_would_refuse_a_record_for_is_altered(
    topic: str, name: str, least: int, harmful: bool
) -> None:
    [change] = planned(cluster(**{topic: {name: str(least - 1)}}))
    assert (change.action, change.config, change.harmful) == (Action.ALTER, {name: str(least)}, harmful)
    assert planned(cluster(**{topic: {name: str(least)}})) == []
    assert name not in getattr(TOPICS, topic).config


def test_partitions_are_never_added() -> None:
    [change] = planned(cluster(bets=3))
    assert (change.action, change.detail) == (Action.LEAVE, "it has 3 partitions, but 6 are declared")
    assert not change.harmful
    assert planned(cluster(bets=50)) == []


def test_several_partitions_of_checkpoints_are_refused() -> None:
    [change] = planned(cluster(checkpoints=2))
    assert (change.action, change.harmful) == (Action.REFUSE, True)
    with pytest.raises(
        TopologyError, match=r"^settlement\.checkpoints: it has 2 partitions and must have one"
    ):
        apply(cast(AdminClient, cluster()), [change], replication_factor=None)


@pytest.mark.parametrize("late", [0, 3])
def test_what_was_created_is_no_difference_any_more(late: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.records.topics.LOOK_SECONDS", 0)
    made = cluster(gaps=None)
    made.late = late
    apply(cast(AdminClient, made), planned(made), replication_factor=1)
    assert planned(made) == []


def small_segments_are_forbidden(config: dict[str, str]) -> bool:
    return int(config.get("segment.bytes", 10**9)) >= 50 * 2**20


@pytest.mark.parametrize(
    ("policy", "clamps", "segments"),
    [
        (
            small_segments_are_forbidden,
            False,
            {k: v for k, v in CLEANED_SOON.items() if k != "segment.bytes"},
        ),
        (lambda config: not CLEANED_SOON.keys() & config.keys(), False, {}),
        (lambda config: True, True, CLEANED_SOON | {"segment.bytes": "52428800"}),
    ],
)
@pytest.mark.parametrize("is_new", [True, False])
def test_a_topic_gets_the_settings_that_the_cluster_allows(
    policy: Callable[[dict[str, str]], bool], clamps: bool, segments: dict[str, str], is_new: bool
) -> None:
    made = cluster(checkpoints=None) if is_new else cluster()
    made.policy, made.clamps = policy, clamps
    if not is_new:
        made.configs["settlement.checkpoints"] = {"cleanup.policy": "delete", "segment.bytes": "1"}
    with capture_logs() as logged:
        apply(cast(AdminClient, made), planned(made), replication_factor=1)
    found = dict(made.configs["settlement.checkpoints"])
    assert found.pop("cleanup.policy") == "compact"
    assert {"segment.bytes": "1", **found} == {"segment.bytes": "1", **segments}
    refused = {line["setting"].partition("=")[0] for line in logged}
    assert refused == (set() if clamps else CLEANED_SOON.keys() - segments.keys())
    [change] = planned(made)
    assert (change.action, change.harmful) == (Action.ACCEPT, False)


def test_a_cluster_that_forbids_what_must_be_is_refused() -> None:
    made = cluster(bets=None)
    made.policy = lambda config: "min.compaction.lag.ms" not in config
    said = r"creating settlement\.bets: .*[Pp]olicy.*; it must have min\.compaction\.lag\.ms=604800000$"
    with pytest.raises(TopologyError, match=said):
        ensure(cast(AdminClient, made), Settings(), Topics.of_feed)
    assert made.created == []


def test_run_refuses_what_would_lose_data() -> None:
    made = cluster(bets={"cleanup.policy": "delete"}, gaps=None)
    with pytest.raises(TopologyError) as caught:
        ensure(cast(AdminClient, made), Settings(), Topics.all)
    assert str(caught.value).splitlines() == [
        "settlement.bets: cleanup.policy is delete, must be compact",
        "Run `bridge topics apply` to correct it, or set BRIDGE_TOPICS__PREFIX to use other topics.",
    ]
    assert made.created == []


def test_run_creates_what_is_missing_and_leaves_the_rest() -> None:
    made = cluster(deadletters=None, checkpoints={"segment.ms": "1"})
    create, _ = planned(made)
    assert (create.action, create.harmful, create.config) == (Action.CREATE, False, TOPICS.deadletters.config)
    with capture_logs() as lines:
        topics = ensure(cast(AdminClient, made), Settings(), Topics.all)
    assert topics == TOPICS
    assert made.created == ["settlement.deadletters"]
    assert [line["action"] for line in lines] == ["create", "accept"]


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [([AclOperation.READ], True), ([AclOperation.READ, AclOperation.WRITE], False), (None, False)],
)
def test_topics_that_may_not_be_written_are_named_before_anything_else(
    allowed: list[AclOperation] | None, refused: bool
) -> None:
    made = cluster(gaps=None)
    made.allowed = allowed
    if refused:
        with pytest.raises(SinkBroken, match=r" or to Write the topic settlement\.bets or .*; grant"):
            ensure(cast(AdminClient, made), Settings(), Topics.of_feed)
    else:
        ensure(cast(AdminClient, made), Settings(), Topics.of_feed)
    assert made.created == ([] if refused else ["settlement.gaps"])


def test_a_program_asks_nothing_of_the_topics_of_another() -> None:
    made = cluster(translations={"cleanup.policy": "delete"}, currencies=None, deadletters=None)
    with capture_logs() as lines:
        ensure(cast(AdminClient, made), Settings(), Topics.of_feed)
    assert made.created == ["settlement.deadletters"]
    assert [line["topic"] for line in lines] == made.created
