"""What the checks of `bridge doctor` find, and that none blocks another."""

from __future__ import annotations

import base64
import os
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Never

import pytest
from confluent_kafka.admin import PartitionMetadata

from bridge.clock_skew import Skew
from bridge.config import ApiSettings, FeedSettings, KafkaSettings, LimitsSettings, RegistrySettings, Settings
from bridge.doctor import bounds, feed_checks, kafka_checks, local_checks
from bridge.doctor.finding import Finding, Verdict, summary
from bridge.doctor.kafka_checks import Needed
from bridge.doctor.runner import CHECKS, Check, run_checks
from bridge.errors import BridgeError, FeedLost, SettingsError, TopologyError
from bridge.feed.rate_limits import Attempt
from bridge.inspection import readers
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.open_transactions import Look, OpenTransaction, RecordPlace
from bridge.masking import MASK, conceal
from bridge.ownership.group import Group, Member
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.records.topics import Action, Change, declare
from bridge.registry import Compatibility, RegistryUnavailable
from tests.fake_registry import FakeRegistry, served

NOW = 1_790_000_000.0
FINE = Finding(Verdict.OK, "fine")
SETTINGS = Settings(
    feed=FeedSettings(
        base_url="https://provider.example", idle_timeout_seconds=60, max_clock_skew_seconds=15
    ),
    kafka=KafkaSettings(bootstrap_servers="broker:9092"),
    registry=RegistrySettings(url="https://registry.example"),
)
CHECKPOINT = Checkpoint(
    feed="settlement-v4",
    revision=1_789_999_970,
    state=State.LIVE,
    ledger=(),
    counters=Counters(),
    updated_at=NOW - 1,
    owner="host:1:abc",
)


def raising(error: Exception) -> Callable[[Settings], Never]:
    def run(settings: Settings) -> Never:
        raise error

    return run


def outcomes(*checks: Check, patience: float = 10) -> dict[str, Finding]:
    return dict(run_checks(lambda: SETTINGS, checks, patience))


def test_a_check_that_fails_does_not_hide_the_others() -> None:
    """Nor does a defect of one, which says nothing about `bridge run`."""
    found = outcomes(
        Check("a", raising(TopologyError("no right"))),
        Check("b", raising(ZeroDivisionError("oops"))),
        Check("c", lambda _: FINE),
    )
    assert found["a"] == Finding(Verdict.FAIL, "no right")
    assert found["b"].outcome is Verdict.TROUBLE
    assert "ZeroDivisionError('oops')" in found["b"].message
    assert found["c"] == FINE


def test_a_secret_that_a_server_quotes_is_masked() -> None:
    conceal("quoted-by-the-registry", "a test's", "me")
    quoted = base64.b64encode(b"me:quoted-by-the-registry").decode()
    found = outcomes(
        Check("a", raising(TopologyError(f"not authorized: Basic {quoted}"))),
        Check("b", lambda _: Finding(Verdict.WARN, "fine", "without quoted-by-the-registry")),
    )
    assert found["a"] == Finding(Verdict.FAIL, f"not authorized: Basic {MASK}")
    assert found["b"] == Finding(Verdict.WARN, "fine", f"without {MASK}")


@pytest.mark.parametrize("error", [KafkaUnavailable("away"), RegistryUnavailable("away"), FeedLost("away")])
def test_what_a_bridge_waits_for_is_trouble_and_no_failure(error: BridgeError) -> None:
    found = outcomes(Check("a", raising(error)), Check("b", lambda _: FINE, needs=("a",)))
    assert found == {"a": Finding(Verdict.TROUBLE, "away"), "b": Finding(Verdict.SKIPPED, "needs a")}


def test_a_check_that_hangs_is_given_up_after_its_time() -> None:
    released = threading.Event()

    def hang(settings: Settings) -> Finding:
        released.wait(30)
        return FINE

    try:
        found = outcomes(Check("a", hang), Check("b", lambda _: FINE), patience=1)
    finally:
        released.set()
    assert found == {"a": Finding(Verdict.TROUBLE, "no answer in 1s"), "b": FINE}


def test_a_check_is_skipped_when_something_that_it_needs_failed_was_skipped_or_is_not_set() -> None:
    never = raising(AssertionError("ran"))
    found = outcomes(
        Check("warns", lambda _: Finding(Verdict.WARN, "old")),
        Check("fails", raising(TopologyError("no"))),
        Check("after both", never, needs=("warns", "fails")),
        Check("after that", never, needs=("after both",)),
        Check("after the warning", lambda _: FINE, needs=("warns",)),
        Check("not set", never, needs=("feed.base_url", "feed.ca_file")),
    )
    assert found["after both"] == Finding(Verdict.SKIPPED, "needs fails")
    assert found["after that"] == Finding(Verdict.SKIPPED, "needs after both")
    assert found["after the warning"] == FINE
    assert found["not set"] == Finding(Verdict.SKIPPED, "needs feed.ca_file")


def test_without_settings_nothing_else_is_checked() -> None:
    def load() -> Never:
        raise SettingsError("feed.base_uri is not a setting")

    [(name, found)] = run_checks(load)
    assert (name, found.outcome, found.message) == (
        "settings",
        Verdict.FAIL,
        "feed.base_uri is not a setting",
    )


def test_a_check_runs_after_those_that_it_depends_on() -> None:
    names = [check.name for check in CHECKS]
    for check in CHECKS:
        assert {name for name in check.needs if "." not in name} <= set(names[: names.index(check.name)])


def test_one_line_says_what_follows() -> None:
    trouble, failure = Finding(Verdict.TROUBLE, "slow"), Finding(Verdict.FAIL, "no right")
    assert summary({"a": FINE}) == ""
    assert summary({"a": FINE, "b": trouble}) == "~ `bridge run` would start; not in order: b"
    both = {"a": trouble, "b": failure, "c": trouble}
    assert summary(both) == "✗ `bridge run` would end: b; not in order either: a, c"


def test_secrets_are_read_and_not_shown(tmp_path: Path) -> None:
    def settings(file: Path) -> Settings:
        kafka: dict[str, Any] = {"bootstrap_servers": "b:1", "sasl_password_file": str(file)}
        return Settings(
            feed=FeedSettings(base_url="https://provider.example", auth="bearer", auth_value_file=file),
            registry=RegistrySettings(url="https://registry.example", user="me", password_file=file),
            api=ApiSettings(token_file=file),
            kafka=KafkaSettings(**kafka),
        )

    full, blank = tmp_path / "full", tmp_path / "blank"
    full.write_text("s3cret\n")
    blank.write_text(" \n")
    names = (
        "BRIDGE_FEED__AUTH_VALUE",
        "BRIDGE_KAFKA__SASL_PASSWORD",
        "BRIDGE_REGISTRY__PASSWORD",
        "BRIDGE_API__TOKEN",
    )
    found = local_checks.check_settings(settings(full))
    assert found.outcome is Verdict.OK
    assert found.message.startswith("file: none\nset: ")
    assert found.message.endswith(f"\nreadable secrets: {', '.join(names)}")
    assert "s3cret" not in found.message
    empty = local_checks.check_settings(settings(blank))
    assert empty.outcome is Verdict.FAIL
    assert sorted(empty.message.splitlines()) == sorted(
        f"{name}_FILE: cannot read {blank}: it is empty" for name in names
    )
    missing = local_checks.check_settings(settings(tmp_path / "nothing"))
    assert missing.outcome is Verdict.FAIL
    assert [f"{name}_FILE: cannot read" in missing.message for name in names] == [True] * 4


def test_a_file_of_the_snapshot_jobs_does_not_end_a_bridge(tmp_path: Path) -> None:
    api = ApiSettings(token_file=tmp_path / "nothing")
    found = local_checks.check_settings(SETTINGS.model_copy(update={"api": api}))
    assert found.outcome is Verdict.TROUBLE
    assert "BRIDGE_API__TOKEN_FILE: cannot read" in found.message


def test_a_token_that_only_the_jobs_lack_is_missed() -> None:
    api = ApiSettings(base_url="https://provider.example")
    found = local_checks.check_settings(SETTINGS.model_copy(update={"api": api}))
    assert (found.outcome, found.message.partition(" ")[0]) == (Verdict.TROUBLE, "api.token")


def test_a_missing_setting_does_not_hide_a_missing_secret(tmp_path: Path) -> None:
    registry = RegistrySettings(user="me", password_file=tmp_path / "nothing")
    found = local_checks.check_settings(SETTINGS.model_copy(update={"registry": registry}))
    assert found.outcome is Verdict.FAIL
    assert "registry.url is not set" in found.message
    assert "BRIDGE_REGISTRY__PASSWORD_FILE: cannot read" in found.message
    readable = tmp_path / "readable"
    readable.write_text("s3cret")
    registry = RegistrySettings(user="me", password_file=readable)
    found = local_checks.check_settings(SETTINGS.model_copy(update={"registry": registry}))
    assert (found.outcome, found.advice) == (Verdict.FAIL, ""), "nothing is wrong with the secret"


def test_a_source_newer_than_its_compiled_form_is_found(tmp_path: Path) -> None:
    """In a checkout after a pull without `make setup`; times in an unpacked wheel mean nothing.

    What another Python has compiled does not run.
    """
    package = tmp_path / "bridge"
    package.mkdir()
    files = (
        "old.so",
        "other.cpython-39.so",
        "old.py",
        "other.py",
        "plain.py",
        "new.py",
        "new.so",
        "orphan.so",
    )
    for at, name in enumerate(files):
        file = package / re.sub(r"^(\w+)\.so$", rf"\1{EXTENSION_SUFFIXES[0]}", name)
        file.touch()
        os.utime(file, (NOW + at, NOW + at))
    assert local_checks.outdated(package) == []
    (tmp_path / "setup.py").touch()
    assert local_checks.outdated(package) == ["bridge/old.py"]


SPENT = tuple(Attempt(NOW - 60 + n, 30, False, NOW - 59 + n) for n in range(5))
STOPPED = replace(CHECKPOINT, state=State.STOPPED_ON_GAP, reason="too old")
REFUSED = replace(CHECKPOINT, state=State.STOPPED, reason="HTTP 401")
CONTINUING = SETTINGS.model_copy(update={"feed": SETTINGS.feed.model_copy(update={"on_gap": "continue"})})
STARTING = SETTINGS.model_copy(update={"feed": SETTINGS.feed.model_copy(update={"start": "71h"})})
SCALED = SETTINGS.model_copy(update={"limits": LimitsSettings(scale=1_000)})
LOST = "the feed can no longer replay everything since"


@pytest.mark.parametrize(
    ("settings", "checkpoint", "later", "outcome", "words"),
    [
        (SETTINGS, None, 0, Verdict.WARN, "what it leaves out is no gap"),
        (STARTING, None, 0, Verdict.OK, "feed.start = 71h"),
        (SETTINGS, CHECKPOINT, 0, Verdict.OK, "Live, the position is 30s old"),
        (SETTINGS, CHECKPOINT, 0, Verdict.OK, "now; used: initial 0 of 5, proper 0 of 5"),
        (SETTINGS, CHECKPOINT, 119, Verdict.OK, "the position is 2m 29s old"),
        (SETTINGS, CHECKPOINT, 120, Verdict.WARN, "no commit for 2m 1s"),
        (SETTINGS, replace(CHECKPOINT, until=NOW + 900.0), 600, Verdict.OK, "position is 10m 30s old"),
        (SETTINGS, replace(CHECKPOINT, until=NOW + 900.0), 1021, Verdict.WARN, "no commit for 17m"),
        (SETTINGS, CHECKPOINT, 120, Verdict.WARN, "before 2026-09-24T14:12:50Z"),
        (SETTINGS, CHECKPOINT, 259_132, Verdict.WARN, "the position is 2d 23h old"),
        (SETTINGS, CHECKPOINT, 259_133, Verdict.TROUBLE, LOST),
        (SETTINGS, CHECKPOINT, -46, Verdict.TROUBLE, "PositionInFuture"),
        (SCALED, CHECKPOINT, 191, Verdict.WARN, "no commit"),
        (SCALED, CHECKPOINT, 192, Verdict.TROUBLE, LOST),
        (SETTINGS, replace(CHECKPOINT, skew=12.0), 0, Verdict.OK, "the position is 42s old"),
        (SETTINGS, replace(CHECKPOINT, ledger=SPENT), 0, Verdict.TROUBLE, "a reconnect at 2026-09-21T14:17:"),
        (SETTINGS, replace(CHECKPOINT, ledger=SPENT), 0, Verdict.TROUBLE, "proper 5 of 5"),
        (SETTINGS, replace(CHECKPOINT, ledger=SPENT, revision=0), 0, Verdict.TROUBLE, "bridge gaps"),
        (SETTINGS, STOPPED, 0, Verdict.FAIL, "StoppedOnGap: too old\n"),
        (SETTINGS, replace(STOPPED, ledger=SPENT), 0, Verdict.FAIL, "a reconnect at 2026-09-21T14:17:"),
        (SETTINGS, REFUSED, 0, Verdict.WARN, "the last run ended: HTTP 401; its position is 30s old"),
        (SETTINGS, REFUSED, 259_171, Verdict.TROUBLE, LOST),
        (CONTINUING, STOPPED, 0, Verdict.OK, "the position is 30s old"),
        (SETTINGS, replace(CHECKPOINT, starting=True, revision=1), 0, Verdict.OK, "Live, the position is"),
        (STARTING, replace(CHECKPOINT, starting=True, revision=1), 0, Verdict.TROUBLE, LOST),
        (CONTINUING, CHECKPOINT, 259_171, Verdict.TROUBLE, LOST),
    ],
)
def test_a_checkpoint_is_judged(
    settings: Settings, checkpoint: Checkpoint | None, later: int, outcome: Verdict, words: str
) -> None:
    """A warning if nothing is committed for longer than the feed is ever silent; trouble if a reconnect must
    wait, or if the feed no longer has the position, or not yet: `bridge run` has to declare that gap. A
    failure once it has stopped on one.
    """
    found = feed_checks.assess_checkpoint(settings, checkpoint, NOW + later)
    assert (found.outcome, words in f"{found.message}\n{found.advice}") == (outcome, True)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ([], Verdict.OK),
        ([(Action.LEAVE, False)], Verdict.OK),
        ([(Action.LEAVE, False), (Action.CREATE, False)], Verdict.WARN),
        ([(Action.ALTER, False)], Verdict.WARN),
        ([(Action.CREATE, False), (Action.ALTER, True)], Verdict.TROUBLE),
        ([(Action.REFUSE, True)], Verdict.TROUBLE),
    ],
)
def test_topics_that_run_could_use_are_judged_by_the_rest(
    changes: list[tuple[Action, bool]], outcome: Verdict
) -> None:
    topics = declare(SETTINGS)
    found = kafka_checks.assess_topics(
        [Change(topics.bets, a, "detail", harmful=harmful) for a, harmful in changes]
    )
    assert found.outcome is outcome
    assert found.message.count("settlement.bets: ") == len(changes)


def test_what_only_the_snapshot_jobs_need_does_not_end_a_bridge() -> None:
    topics = declare(SETTINGS)
    harmful = [Change(topics.translations, Action.ALTER, "detail", harmful=True)]
    assert kafka_checks.assess_topics(harmful).outcome is Verdict.TROUBLE
    names = Needed(
        "settlement.translations", kafka_checks.TOPIC_RIGHTS, frozenset(), kafka_checks.TOPIC_RIGHTS
    )
    gaps = Needed("settlement.gaps", kafka_checks.TOPIC_RIGHTS, ALL - {"READ"}, kafka_checks.READ)
    assert kafka_checks.assess_rights([names, gaps], has_members=True).outcome is Verdict.TROUBLE
    assert (
        kafka_checks.assess_rights([gaps._replace(allowed=frozenset())], has_members=True).outcome
        is Verdict.FAIL
    )
    bets = Needed("settlement.bets", kafka_checks.TOPIC_RIGHTS, frozenset())
    assert kafka_checks.assess_rights([names, bets], has_members=True).outcome is Verdict.FAIL
    compatibility = {"settlement.translations-value": Compatibility.INCOMPATIBLE}
    assert kafka_checks.assess_schemas(compatibility).outcome is Verdict.TROUBLE
    compatibility["settlement.bets-value"] = Compatibility.INCOMPATIBLE
    assert kafka_checks.assess_schemas(compatibility).outcome is Verdict.FAIL


ALL = frozenset({"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"})


@pytest.mark.parametrize(
    ("on_topics", "on_group", "outcome", "words"),
    [
        ({"settlement.bets": ALL}, {"READ", "DESCRIBE"}, Verdict.OK, "transactional id"),
        *(
            ({"a": ALL, "b": ALL - {right}}, {"READ"}, Verdict.FAIL, f"b: missing {right}")
            for right in sorted(kafka_checks.TOPIC_RIGHTS)
        ),
        ({}, {"DESCRIBE"}, Verdict.FAIL, "the group g: missing READ"),
        ({"a": None}, {"READ"}, Verdict.WARN, "does not report"),
        ({"a": None}, set(), Verdict.FAIL, "the group g: missing READ"),
    ],
)
def test_rights_are_judged_by_what_is_needed(
    on_topics: dict[str, frozenset[str] | None], on_group: set[str], outcome: Verdict, words: str
) -> None:
    needed = [Needed(name, kafka_checks.TOPIC_RIGHTS, allowed) for name, allowed in on_topics.items()]
    needed.append(Needed("the group g", kafka_checks.GROUP_RIGHTS, frozenset(on_group)))
    found = kafka_checks.assess_rights(needed, has_members=True)
    assert (found.outcome, words in found.message) == (outcome, True)
    assert outcome is not Verdict.FAIL or found.message == words


def test_rights_on_topics_that_nobody_sees_are_not_called_granted() -> None:
    found = kafka_checks.assess_rights([], ["settlement.bets"], has_members=False)
    assert found.message.endswith("topics that are missing or hidden: settlement.bets")


def partition(number: int, leader: int, replicas: list[int], in_sync: list[int]) -> PartitionMetadata:
    """A partition as brokers describe it."""
    found = PartitionMetadata()
    found.id, found.leader, found.replicas, found.isrs = number, leader, replicas, in_sync
    return found


@pytest.mark.parametrize(
    ("partitions", "outcome", "words"),
    [
        ([partition(0, 1, [1, 2, 3], [3, 1, 2])], Verdict.OK, "3 of each partition, in sync"),
        ([], Verdict.OK, "no topic yet"),
        (
            [partition(0, 1, [1, 2, 3], [1, 2])],
            Verdict.WARN,
            "not in sync: 3 (does not answer)",
        ),
        ([partition(0, 1, [1, 2, 3], [1, 3])], Verdict.WARN, "t partition 0: not in sync: 2"),
        (
            [partition(0, 1, [1, 2, 3], [1])],
            Verdict.TROUBLE,
            "takes no writes: 1 of 2 in sync, not 2, 3 (",
        ),
        ([partition(4, -1, [3], [])], Verdict.TROUBLE, "has no leader: only broker 3 (does not answer)"),
        ([partition(4, -1, [1, 3, 4], [3])], Verdict.TROUBLE, "only broker 3 (does not answer) can lead it"),
        ([partition(0, 1, [1], [1])], Verdict.WARN, "t partition 0: 1 replica, should have 3"),
        ([partition(0, 1, [1, 2], [1, 2])], Verdict.WARN, "t partition 0: 2 replicas, should have 3"),
        ([partition(n, 1, [1, 2, 3], [1, 2]) for n in range(9)], Verdict.WARN, "and 6 more partitions"),
    ],
)
def test_replicas_are_judged_by_what_a_write_needs(
    partitions: list[PartitionMetadata], outcome: Verdict, words: str
) -> None:
    found = kafka_checks.assess_replicas({"t": partitions} if partitions else {}, {"t": 2}, 3, {1, 2})
    assert (found.outcome, words in found.message) == (outcome, True), found
    assert outcome is Verdict.OK or found.message.startswith(("t partition 0", "t partition 4"))


def test_replicas_are_not_looked_at_without_the_rights_on_the_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Never:
        raise TopologyError("no right to DescribeConfigs the topic t; grant it")

    monkeypatch.setattr("bridge.records.topics.min_insync_replicas", refuse)
    monkeypatch.setattr(
        "bridge.kafka.admin.metadata", lambda *_: SimpleNamespace(topics={}, brokers={1: None})
    )
    found = kafka_checks.check_replicas(Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1")))
    assert (found.outcome, found.message[:27]) == (Verdict.SKIPPED, "no right to DescribeConfigs")


def member(number: int = 1, name: str = "host:17:0123abcd", *, holds: bool = False) -> Member:
    return Member(str(number), name, f"10.0.0.{number}", holds)


def group(*holding: bool) -> Group:
    """Members of which some own the feed."""
    return Group(tuple(member(n, holds=holds) for n, holds in enumerate(holding)))


def test_a_group_of_the_newer_protocol_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    stray = SimpleNamespace(member_id="1", client_id="stray", host="/10.0.0.9")
    monkeypatch.setattr(kafka_checks, "ask_members", lambda _: Group())
    monkeypatch.setattr(kafka_checks, "_group", lambda *_: SimpleNamespace(members=[stray]))
    found = kafka_checks.check_leadership(SETTINGS)
    assert (found.outcome, "stray from 10.0.0.9" in found.message) == (Verdict.TROUBLE, True)


BROKER = {
    bounds.LEAST_SESSION: "6000",
    bounds.LONGEST_SESSION: "30000",
    bounds.LONGEST_TRANSACTION: "60000",
    bounds.LARGEST_GROUP: "3",
    bounds.COPIES: "3",
}


LAX = dict.fromkeys(BROKER, "1800000") | {bounds.LEAST_SESSION: "1"}
bounded = partial(bounds.assess_bounds, brokers=[BROKER, LAX], is_first=False)
led = partial(kafka_checks.assess_leadership, "settlement.f.owner")
clock = partial(feed_checks.assess_clock, SETTINGS.feed)


@pytest.mark.parametrize(
    ("assess", "outcome", "words"),
    [
        (partial(local_checks.assess_form, True, []), Verdict.OK, "is compiled"),
        (
            partial(local_checks.assess_form, True, ["bridge/old.py"]),
            Verdict.WARN,
            "the source of bridge/old.py",
        ),
        (partial(local_checks.assess_form, False, []), Verdict.WARN, "plain Python, which is slower"),
        (partial(local_checks.assess_form, False, ["bridge/old.py"]), Verdict.WARN, "plain Python"),
        (partial(clock, None), Verdict.WARN, "without its time"),
        (partial(clock, Skew(-0.3, 0.7)), Verdict.OK, "agrees with ours"),
        (partial(clock, Skew(14.9, 16.1)), Verdict.OK, "at least 14.9s ahead of ours"),
        (partial(clock, Skew(15.1, 16.3)), Verdict.FAIL, "more than 15s stop the bridge"),
        (partial(clock, Skew(-17.0, -15.5)), Verdict.FAIL, "at least 15.5s behind ours"),
        (partial(led, group()), Verdict.WARN, "no members"),
        (partial(led, group(False, False)), Verdict.WARN, "2 members, none of which owns"),
        (partial(led, group(False, True, False)), Verdict.OK, "owned from 10.0.0.1, 2 standbys"),
        (
            partial(led, Group((member(name="rdkafka"),))),
            Verdict.TROUBLE,
            "no bridges: rdkafka from 10.0.0.1",
        ),
        (
            partial(led, group(True)._replace(protocol="range")),
            Verdict.TROUBLE,
            "range, not cooperative-sticky",
        ),
        (partial(bounded, 6_000, 60_000, 2), Verdict.OK, "are allowed"),
        (partial(bounded, 5_999, 60_000, 2), Verdict.TROUBLE, "the brokers take 6000 to 30000"),
        (partial(bounded, 30_001, 60_000, 2), Verdict.TROUBLE, "the brokers take 6000 to 30000"),
        (partial(bounded, 10_000, 60_001, 2), Verdict.FAIL, "more than transaction.max.timeout.ms = 60000"),
        (partial(bounded, 10_000, 60_000, 3), Verdict.WARN, "the owner group is full: 3 of 3 members"),
        (partial(bounded, 1, 1, 1, brokers=[{}]), Verdict.SKIPPED, ""),  # what they do not show
        # The first transaction makes a topic of three copies.
        (partial(bounded, 10_000, 60_000, 0, brokers=[BROKER] * 2, is_first=True), Verdict.TROUBLE, ""),
        (partial(bounded, 10_000, 60_000, 0, brokers=[BROKER] * 3, is_first=True), Verdict.OK, ""),
    ],
)
def test_what_is_seen_is_judged(assess: Callable[[], Finding], outcome: Verdict, words: str) -> None:
    found = assess()
    assert (found.outcome, words in found.message) == (outcome, True), found


def test_a_transaction_that_stays_open_is_shown_and_not_ended() -> None:
    assert kafka_checks.assess_transactions(SETTINGS.kafka, Look((), {}), NOW).outcome is Verdict.OK
    ages = (3, 300)
    found = tuple(OpenTransaction(RecordPlace("t.bets", n, 7), NOW - age, 6) for n, age in enumerate(ages))
    finding = kafka_checks.assess_transactions(SETTINGS.kafka, Look(found, {}), NOW)
    assert finding.outcome is Verdict.TROUBLE
    assert re.findall(
        r"partition (\d) from offset 7, .*: open for (.*) by its first record", finding.message
    ) == [
        ("0", "3s"),
        ("1", "5m"),
    ]
    assert re.findall(r"describe-producers .* --partition (\d)", finding.advice) == ["0", "1"]
    assert " abort --" not in finding.advice


def test_a_topic_that_cannot_be_looked_at_is_no_topic_without_transactions() -> None:
    unknown = {"t.gaps": "no right to Describe", "t.bets": "no right to Describe"}
    finding = kafka_checks.assess_transactions(SETTINGS.kafka, Look((), unknown), NOW)
    assert finding == Finding(Verdict.TROUBLE, "no right to Describe")
    found = OpenTransaction(RecordPlace("t.checkpoints", 0, 7), NOW - 6, 6)
    finding = kafka_checks.assess_transactions(SETTINGS.kafka, Look((found,), unknown), NOW)
    assert [line.split()[0] for line in finding.message.splitlines()] == ["t.checkpoints", "no"]


def test_an_answer_that_does_not_come_has_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "ANSWER_SECONDS", 0.01)

    def read(give_up: Callable[[], bool], on_status: Callable[[str], None]) -> None:
        on_status("the leader moves")
        while not give_up():
            pass

    with pytest.raises(KafkaUnavailable, match=r"t could not be read within .*: the leader moves"):
        readers.read_in_time(SETTINGS, "t", read)


@pytest.mark.parametrize(
    ("compatibility", "outcome"),
    [
        ([Compatibility.REGISTERED, Compatibility.REGISTERED], Verdict.OK),
        ([Compatibility.REGISTERED, Compatibility.NEW], Verdict.OK),
        ([Compatibility.COMPATIBLE, Compatibility.REGISTERED], Verdict.OK),
        ([Compatibility.COMPATIBLE, Compatibility.INCOMPATIBLE], Verdict.FAIL),
        ([Compatibility.REGISTERED, Compatibility.ALTERED], Verdict.FAIL),
    ],
)
def test_a_registry_is_judged_by_what_it_would_take(
    compatibility: list[Compatibility], outcome: Verdict
) -> None:
    found = kafka_checks.assess_schemas({f"s{n}": how for n, how in enumerate(compatibility)})
    assert found.outcome is outcome
    for n, how in enumerate(compatibility):
        words = "`bridge run` registers" if how is Compatibility.NEW else how.value
        assert (f"s{n}: {words}" in found.message) == (how is not Compatibility.REGISTERED)


def test_of_the_registry_a_bridge_needs_its_own_schemas() -> None:
    def hide(name: str) -> None:
        fake.refusal = lambda method, path: (
            (401, {"error_code": 40101, "message": "not yours"}) if name in path else None
        )

    fake = FakeRegistry()
    with served(fake) as url:
        settings = Settings(registry=RegistrySettings(url=url))
        assert kafka_checks.check_registry(settings).outcome is Verdict.OK
        hide("settlement.snapshots-value")
        assert kafka_checks.check_registry(settings).outcome is Verdict.TROUBLE
        fake.subjects |= {"settlement.bets-value": "{}"}
        assert kafka_checks.check_registry(settings).outcome is Verdict.FAIL
        fake.subjects = {}
        hide("settlement.bets-value")
        with pytest.raises(TopologyError, match="not yours"):
            kafka_checks.check_registry(settings)


def test_who_registers_a_missing_schema_is_named() -> None:
    new = Compatibility.NEW
    found = kafka_checks.assess_schemas({"s.bets-value": new, "s.currencies-value": new})
    assert found.message.splitlines() == [
        "the registry answers; 2 schemas are not registered yet:",
        "s.bets-value: `bridge run` registers it",
        "s.currencies-value: the snapshot jobs register it",
    ]
