"""What the checks of `bridge doctor` find, and that none blocks another."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Never

import pytest

from bridge.avro.registry import Standing
from bridge.clock_skew import Skew
from bridge.config import ApiSettings, FeedSettings, KafkaSettings, LimitsSettings, RegistrySettings, Settings
from bridge.doctor import feed_checks, kafka_checks
from bridge.doctor.finding import Finding, Outcome, finding_as_json, finding_as_lines
from bridge.doctor.runner import CHECKS, Check, run_checks
from bridge.errors import SettingsError, TopologyError
from bridge.feed.rate_limits import Attempt
from bridge.kafka.group import Group, Member
from bridge.kafka.topics import Action, Change, declare
from bridge.state.checkpoint import Checkpoint, Counters, State

NOW = 1_790_000_000.0
FINE = Finding(Outcome.OK, "fine")
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
    found = outcomes(
        Check("a", raising(TopologyError("no right"))),
        Check("b", raising(ZeroDivisionError("oops"))),
        Check("c", lambda _: FINE),
    )
    assert found["a"] == Finding(Outcome.FAIL, "no right")
    assert found["b"].outcome is Outcome.FAIL
    assert "ZeroDivisionError('oops')" in found["b"].message
    assert found["c"] == FINE


def test_a_check_that_hangs_fails_after_its_time() -> None:
    released = threading.Event()

    def hang(settings: Settings) -> Finding:
        released.wait(30)
        return FINE

    try:
        found = outcomes(Check("a", hang), Check("b", lambda _: FINE), patience=0.05)
    finally:
        released.set()
    assert found == {"a": Finding(Outcome.FAIL, "no answer in 0.05 s"), "b": FINE}


def test_a_check_is_skipped_when_something_that_it_needs_failed_was_skipped_or_is_not_set() -> None:
    """A warning is no failure."""
    never = raising(AssertionError("ran"))
    found = outcomes(
        Check("warns", lambda _: Finding(Outcome.WARN, "old")),
        Check("fails", raising(TopologyError("no"))),
        Check("after both", never, after=("warns", "fails")),
        Check("after that", never, after=("after both",)),
        Check("after the warning", lambda _: FINE, after=("warns",)),
        Check("not set", never, settings=("feed.base_url", "feed.ca_file")),
    )
    assert found["after both"] == Finding(Outcome.SKIPPED, "needs fails")
    assert found["after that"] == Finding(Outcome.SKIPPED, "needs after both")
    assert found["after the warning"] == FINE
    assert found["not set"] == Finding(Outcome.SKIPPED, "needs feed.ca_file")


def test_settings_that_cannot_be_read_skip_all_other_checks() -> None:

    def load() -> Never:
        raise SettingsError("feed.base_uri is not a setting")

    found = dict(run_checks(load))
    assert found.pop("settings") == Finding(Outcome.FAIL, "feed.base_uri is not a setting")
    assert {finding.outcome for finding in found.values()} == {Outcome.SKIPPED}
    assert set(found) == {check.name for check in CHECKS} - {"settings"}


def test_a_check_runs_after_those_that_it_depends_on() -> None:
    names = [check.name for check in CHECKS]
    for check in CHECKS:
        assert set(check.after) <= set(names[: names.index(check.name)])


def test_a_finding_for_people_and_scripts() -> None:
    """Marked and aligned, with the advice after an arrow."""
    finding = Finding(Outcome.WARN, "one\ntwo", "do it")
    assert finding_as_lines("kafka", finding, 8) == "! kafka     one\n            two\n            → do it"
    marks = [finding_as_lines("a", Finding(outcome, "b"), 1) for outcome in Outcome]
    assert marks == ["✓ a  b", "! a  b", "✗ a  b", "- a  b"]
    expected = {"check": "kafka", "outcome": "warn", "message": "one\ntwo", "advice": "do it"}
    assert finding_as_json("kafka", finding) == expected


def test_settings_are_named_and_not_shown() -> None:
    """A value may be a secret."""
    kafka: dict[str, Any] = {"bootstrap_servers": "broker:9092", "sasl_password": "s3cret"}
    settings = SETTINGS.model_copy(update={"kafka": KafkaSettings(**kafka)})
    found = feed_checks.check_settings(settings)
    assert found.outcome is Outcome.OK
    assert "feed.base_url" in found.message
    assert "kafka.sasl_password" in found.message
    assert "s3cret" not in found.message
    assert "feed.safety_margin_seconds" not in found.message


def test_secrets_are_read_and_not_shown(tmp_path: Path) -> None:
    """Each is named by its variable."""

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
        "BRIDGE_REGISTRY__PASSWORD",
        "BRIDGE_API__TOKEN",
        "BRIDGE_KAFKA__SASL_PASSWORD",
    )
    found = feed_checks.check_settings(settings(full))
    assert found.outcome is Outcome.OK
    assert found.message.endswith(f"\nsecrets that are readable: {', '.join(names)}")
    assert "s3cret" not in found.message
    empty = feed_checks.check_settings(settings(blank))
    assert (empty.outcome, empty.message) == (
        Outcome.FAIL,
        "\n".join(f"{name} or {name}_FILE is empty" for name in names),
    )
    missing = feed_checks.check_settings(settings(tmp_path / "nothing"))
    assert missing.outcome is Outcome.FAIL
    assert [f"{name}_FILE: cannot read" in missing.message for name in names] == [True] * 4


def test_no_secret_is_needed_by_default() -> None:
    assert "no secret is needed" in feed_checks.check_settings(SETTINGS).message


def test_a_missing_setting_does_not_hide_a_missing_secret(tmp_path: Path) -> None:
    registry = RegistrySettings(user="me", password_file=tmp_path / "nothing")
    found = feed_checks.check_settings(SETTINGS.model_copy(update={"registry": registry}))
    assert found.outcome is Outcome.FAIL
    assert "registry.url is not set" in found.message
    assert "BRIDGE_REGISTRY__PASSWORD_FILE: cannot read" in found.message


def test_plain_python_is_worth_a_warning() -> None:
    """It does the same, except that the compiled converter is not available."""
    assert feed_checks.assess_form(True, [], "compiled").outcome is Outcome.OK
    plain = feed_checks.assess_form(False, [], "pydantic")
    assert (plain.outcome, "plain Python" in plain.message) == (Outcome.WARN, True)
    ignored = feed_checks.assess_form(False, [], "compiled")
    assert "feed.converter is compiled, which has no effect: pydantic converts" in ignored.message
    assert "no effect" not in plain.message


def test_a_source_newer_than_its_compiled_form_is_worth_a_warning(tmp_path: Path) -> None:
    """In a checkout after a pull without `make setup`; times in an unpacked wheel mean nothing."""
    package = tmp_path / "bridge"
    package.mkdir()
    for at, name in enumerate(("old.so", "old.py", "plain.py", "new.py", "new.so", "orphan.so")):
        file = package / name.replace(".so", ".cpython-313-x86_64-linux-gnu.so")
        file.touch()
        os.utime(file, (NOW + at, NOW + at))
    assert feed_checks.outdated(package) == []
    (tmp_path / "setup.py").touch()
    assert feed_checks.outdated(package) == ["bridge/old.py"]
    found = feed_checks.assess_form(True, ["bridge/old.py"], "pydantic")
    assert (found.outcome, "an older source than bridge/old.py" in found.message) == (Outcome.WARN, True)
    plain = feed_checks.assess_form(False, ["bridge/old.py"], "pydantic")
    assert plain == feed_checks.assess_form(False, [], "pydantic")


@pytest.mark.parametrize(
    ("skew", "outcome", "words"),
    [
        (None, Outcome.WARN, "without its time"),
        (Skew(-0.3, 0.7), Outcome.OK, "agrees with ours"),
        (Skew(14.9, 16.1), Outcome.OK, "at least 14.9 s ahead of ours"),
        (Skew(15.1, 16.3), Outcome.FAIL, "more than 15 s stop the bridge"),
        (Skew(-17.0, -15.5), Outcome.FAIL, "at least 15.5 s behind ours"),
    ],
)
def test_a_clock_fails_where_it_would_stop_the_bridge(
    skew: Skew | None, outcome: Outcome, words: str
) -> None:
    """By the smallest skew that explains the measurement."""
    found = feed_checks.assess_clock(SETTINGS, skew)
    assert (found.outcome, words in found.message) == (outcome, True)


def test_without_a_checkpoint_the_first_start_is_named() -> None:
    found = feed_checks.assess_checkpoint(SETTINGS, None, NOW)
    assert (found.outcome, "feed.start = 0" in found.message) == (Outcome.OK, True)


@pytest.mark.parametrize(
    ("later", "outcome", "words"),
    [
        (0, Outcome.OK, "Live, the position is 30s old"),
        (119, Outcome.OK, "the position is 2m 29s old"),
        (120, Outcome.WARN, "no commit for 2m 1s"),
        (259_170, Outcome.WARN, "the position is 3d old"),
        (259_171, Outcome.FAIL, "the feed can no longer replay"),
    ],
)
def test_a_checkpoint_is_judged_by_its_age(later: int, outcome: Outcome, words: str) -> None:
    """A warning without commits for longer than the feed is ever silent, a failure past its memory."""
    found = feed_checks.assess_checkpoint(SETTINGS, CHECKPOINT, NOW + later)
    assert (found.outcome, words in found.message) == (outcome, True)
    if outcome is Outcome.WARN:
        assert "before 2026-09-24T14:12:50Z" in found.advice


def test_the_age_of_a_position_is_by_the_providers_clock() -> None:
    ahead = replace(CHECKPOINT, skew=12.0)
    assert "the position is 42s old" in feed_checks.assess_checkpoint(SETTINGS, ahead, NOW).message


def test_a_reconnect_that_has_to_wait_is_worth_a_warning() -> None:
    """It does not hide that the position is lost."""
    free = feed_checks.assess_checkpoint(SETTINGS, CHECKPOINT, NOW)
    assert (free.outcome, "now; used: initial 0 of 5, proper 0 of 5" in free.message) == (Outcome.OK, True)
    ledger = tuple(Attempt(NOW - 60 + n, 30, False, NOW - 59 + n) for n in range(5))
    spent = feed_checks.assess_checkpoint(SETTINGS, replace(CHECKPOINT, ledger=ledger), NOW)
    assert spent.outcome is Outcome.WARN
    assert "the limits allow a reconnect at 2026-09-21T14:17:" in spent.message
    assert "proper 5 of 5" in spent.message
    lost = feed_checks.assess_checkpoint(SETTINGS, replace(CHECKPOINT, ledger=ledger, revision=0), NOW)
    assert (lost.outcome, "bridge gaps" in lost.advice) == (Outcome.FAIL, True)


def test_a_stop_on_a_gap_is_a_failure_unless_the_bridge_is_to_continue() -> None:
    stopped = replace(CHECKPOINT, state=State.STOPPED_ON_GAP, reason="too old")
    found = feed_checks.assess_checkpoint(SETTINGS, stopped, NOW)
    assert (found.outcome, found.message.splitlines()[0]) == (Outcome.FAIL, "StoppedOnGap: too old")
    continuing = SETTINGS.model_copy(update={"feed": SETTINGS.feed.model_copy(update={"on_gap": "continue"})})
    assert feed_checks.assess_checkpoint(continuing, stopped, NOW).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ([], Outcome.OK),
        ([(Action.LEAVE, False)], Outcome.OK),
        ([(Action.LEAVE, False), (Action.CREATE, False)], Outcome.WARN),
        ([(Action.ALTER, False)], Outcome.WARN),
        ([(Action.CREATE, False), (Action.ALTER, True)], Outcome.FAIL),
        ([(Action.REFUSE, True)], Outcome.FAIL),
    ],
)
def test_topics_are_judged_by_what_run_would_do(changes: list[tuple[Action, bool]], outcome: Outcome) -> None:
    """It refuses to lose data, and repairs or leaves the rest."""
    topic = declare(SETTINGS).bets
    found = kafka_checks.assess_topics(
        [Change(topic, a, "detail", harmful=harmful) for a, harmful in changes]
    )
    assert found.outcome is outcome
    assert found.message.count("settlement.bets: ") == len(changes)


ALL = frozenset({"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"})


def test_rights_that_suffice() -> None:
    """Rights that cannot be checked without harm are named."""
    found = kafka_checks.assess_rights({"settlement.bets": ALL}, frozenset({"READ", "DESCRIBE"}))
    assert (found.outcome, "transactional id" in found.message) == (Outcome.OK, True)


@pytest.mark.parametrize("right", sorted(kafka_checks.TOPIC_RIGHTS))
def test_a_right_that_is_missing_on_a_topic_is_named(right: str) -> None:
    found = kafka_checks.assess_rights({"a": ALL, "b": ALL - {right}}, frozenset({"READ"}))
    assert (found.outcome, found.message) == (Outcome.FAIL, f"b: {right} is not allowed")


def test_a_right_that_is_missing_on_the_group_is_named() -> None:
    found = kafka_checks.assess_rights({}, frozenset({"DESCRIBE"}))
    assert (found.outcome, found.message) == (Outcome.FAIL, "the leadership group: READ is not allowed")


def test_rights_that_the_cluster_does_not_report_are_no_failure() -> None:
    """A reported right that is missing still is."""
    assert kafka_checks.assess_rights({"a": None}, frozenset({"READ"})).outcome is Outcome.WARN
    assert kafka_checks.assess_rights({"a": None}, frozenset()).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("holding", "outcome", "words"),
    [
        ([], Outcome.WARN, "no members"),
        ([False, False], Outcome.WARN, "2 members, none of which owns"),
        ([False, True, False], Outcome.OK, "owned from 10.0.0.1, 2 standing by"),
    ],
)
def test_a_feed_without_an_owner_is_worth_a_warning(
    holding: list[bool], outcome: Outcome, words: str
) -> None:
    group = Group(tuple(Member(str(n), "", f"10.0.0.{n}", holds) for n, holds in enumerate(holding)))
    found = kafka_checks.assess_leadership("settlement.f.owner", group)
    assert (found.outcome, words in found.message) == (outcome, True)


@pytest.mark.parametrize(
    ("standings", "outcome"),
    [
        ([Standing.REGISTERED, Standing.REGISTERED], Outcome.OK),
        ([Standing.REGISTERED, Standing.NEW], Outcome.OK),
        ([Standing.COMPATIBLE, Standing.REGISTERED], Outcome.OK),
        ([Standing.COMPATIBLE, Standing.INCOMPATIBLE], Outcome.FAIL),
    ],
)
def test_a_registry_is_judged_by_what_it_would_take(standings: list[Standing], outcome: Outcome) -> None:
    """Every subject that is not registered is named."""
    found = kafka_checks.assess_schemas({f"s{n}": how for n, how in enumerate(standings)})
    assert found.outcome is outcome
    for n, how in enumerate(standings):
        assert (f"s{n}: {how.value}" in found.message) == (how is not Standing.REGISTERED)


def test_a_scaled_provider_forgets_sooner() -> None:
    scaled = SETTINGS.model_copy(update={"limits": LimitsSettings(scale=1_000)})
    assert feed_checks.assess_checkpoint(scaled, CHECKPOINT, NOW + 229).outcome is Outcome.WARN
    assert feed_checks.assess_checkpoint(scaled, CHECKPOINT, NOW + 230).outcome is Outcome.FAIL
