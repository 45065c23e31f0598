"""What the doctor says of what it sees, and that no check stands in another's way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Never

import pytest

from bridge.avro.encoder import compiled
from bridge.avro.registry import Standing
from bridge.clock_skew import Skew
from bridge.config import ApiSettings, FeedSettings, KafkaSettings, LimitsSettings, RegistrySettings, Settings
from bridge.doctor import CHECKS, Check, examine, feed_checks, kafka_checks
from bridge.doctor.finding import Finding, Outcome, finding_as_json, finding_as_lines
from bridge.errors import SettingsError, TopologyError
from bridge.feed.rate_limits import Attempt
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
    def look(settings: Settings) -> Never:
        raise error

    return look


def outcomes(*checks: Check, patience: float = 10) -> dict[str, Finding]:
    return dict(examine(lambda: SETTINGS, checks, patience))


def test_a_check_that_fails_does_not_hide_the_others() -> None:
    """Whether it explains itself or not."""
    found = outcomes(
        Check("a", raising(TopologyError("no right"))),
        Check("b", raising(ZeroDivisionError("oops"))),
        Check("c", lambda _: FINE),
    )
    assert found["a"] == Finding(Outcome.FAIL, "no right")
    assert found["b"].outcome is Outcome.FAIL
    assert "ZeroDivisionError('oops')" in found["b"].seen
    assert found["c"] == FINE


def test_a_check_that_hangs_is_left_alone() -> None:
    """After its time, and the next one gets its own."""
    released = threading.Event()

    def hang(settings: Settings) -> Finding:
        released.wait(30)
        return FINE

    try:
        found = outcomes(Check("a", hang), Check("b", lambda _: FINE), patience=0.05)
    finally:
        released.set()
    assert found == {"a": Finding(Outcome.FAIL, "no answer in 0.05 s"), "b": FINE}


def test_what_has_nothing_to_look_at_is_skipped() -> None:
    """For what it needs has failed, or was skipped itself, or is not set; a warning is no failure."""
    never = raising(AssertionError("looked at"))
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


def test_settings_that_cannot_be_read_skip_everything() -> None:
    """And are told like any other finding."""

    def load() -> Never:
        raise SettingsError("feed.base_uri is not a setting")

    found = dict(examine(load))
    assert found.pop("settings") == Finding(Outcome.FAIL, "feed.base_uri is not a setting")
    assert {finding.outcome for finding in found.values()} == {Outcome.SKIPPED}
    assert set(found) == {check.name for check in CHECKS} - {"settings"}


def test_what_is_needed_first_is_looked_at_first() -> None:
    """Or it could not be known to have failed."""
    names = [check.name for check in CHECKS]
    for check in CHECKS:
        assert set(check.after) <= set(names[: names.index(check.name)])


def test_a_finding_for_people_and_scripts() -> None:
    """Marked, aligned, and what to do after an arrow."""
    finding = Finding(Outcome.WARN, "one\ntwo", "do it")
    assert finding_as_lines("kafka", finding, 8) == "! kafka     one\n            two\n            → do it"
    marks = [finding_as_lines("a", Finding(outcome, "b"), 1) for outcome in Outcome]
    assert marks == ["✓ a  b", "! a  b", "✗ a  b", "- a  b"]
    expected = {"check": "kafka", "outcome": "warn", "seen": "one\ntwo", "advice": "do it"}
    assert finding_as_json("kafka", finding) == expected


def test_settings_are_named_and_not_shown() -> None:
    """A value may be a secret."""
    kafka: dict[str, Any] = {"bootstrap_servers": "broker:9092", "sasl_password": "s3cret"}
    settings = SETTINGS.model_copy(update={"kafka": KafkaSettings(**kafka)})
    found = feed_checks.settings_told(settings)
    assert found.outcome is Outcome.OK
    assert "feed.base_url" in found.seen
    assert "kafka.sasl_password" in found.seen
    assert "s3cret" not in found.seen
    assert "feed.safety_margin_seconds" not in found.seen
    with pytest.raises(SettingsError, match=r"registry\.url"):
        feed_checks.settings_told(settings.model_copy(update={"registry": RegistrySettings()}))


def test_secrets_are_read_and_not_shown(tmp_path: Path) -> None:
    """Each by the variable that names it."""

    def settings(file: Path) -> Settings:
        kafka: dict[str, Any] = {"bootstrap_servers": "b:1", "sasl_password_file": str(file)}
        return Settings(
            feed=FeedSettings(auth="bearer", auth_value_file=file),
            registry=RegistrySettings(user="me", password_file=file),
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
    assert feed_checks.secrets_readable(settings(full)) == Finding(
        Outcome.OK, f"readable: {', '.join(names)}"
    )
    empty = feed_checks.secrets_readable(settings(blank))
    assert (empty.outcome, empty.seen) == (Outcome.FAIL, "\n".join(f"{name} is empty" for name in names))
    missing = feed_checks.secrets_readable(settings(tmp_path / "nothing"))
    assert missing.outcome is Outcome.FAIL
    assert [f"{name}_FILE: cannot read" in missing.seen for name in names] == [True] * 4


def test_no_secret_is_needed_by_default() -> None:
    """And none is looked for."""
    assert feed_checks.secrets_readable(SETTINGS) == Finding(Outcome.OK, "none is needed")


def test_plain_python_is_worth_a_warning() -> None:
    """It works all the same, but for the converter that there is only in the compiled form."""
    assert feed_checks.judged_form(True, [], "compiled").outcome is Outcome.OK
    plain = feed_checks.judged_form(False, [], "pydantic")
    assert (plain.outcome, "plain Python" in plain.seen) == (Outcome.WARN, True)
    asked = feed_checks.judged_form(False, [], "compiled")
    assert asked.seen == f"{plain.seen}; feed.converter is pydantic, not compiled as was asked"
    found = feed_checks.judged_form(compiled(), feed_checks.outdated(feed_checks.PACKAGE), "pydantic")
    assert feed_checks.hot_path_compiled(SETTINGS) == found


def test_a_source_newer_than_its_compiled_form_is_worth_a_warning(tmp_path: Path) -> None:
    """Where somebody pulls and does not compile; what is unpacked from a wheel has any age."""
    package = tmp_path / "bridge"
    package.mkdir()
    for at, name in enumerate(("old.so", "old.py", "plain.py", "new.py", "new.so", "orphan.so")):
        file = package / name.replace(".so", ".cpython-313-x86_64-linux-gnu.so")
        file.touch()
        os.utime(file, (NOW + at, NOW + at))
    assert feed_checks.outdated(package) == []
    (tmp_path / "setup.py").touch()
    assert feed_checks.outdated(package) == ["bridge/old.py"]
    found = feed_checks.judged_form(True, ["bridge/old.py"], "pydantic")
    assert (found.outcome, "an older source than bridge/old.py" in found.seen) == (Outcome.WARN, True)
    plain = feed_checks.judged_form(False, ["bridge/old.py"], "pydantic")
    assert plain == feed_checks.judged_form(False, [], "pydantic")


@pytest.mark.parametrize(
    ("skew", "outcome", "words"),
    [
        (None, Outcome.WARN, "does not tell the time"),
        (Skew(-0.3, 0.7), Outcome.OK, "agrees with ours"),
        (Skew(14.9, 16.1), Outcome.OK, "at least 14.9 s ahead of ours"),
        (Skew(15.1, 16.3), Outcome.FAIL, "more than 15 s stop the bridge"),
        (Skew(-17.0, -15.5), Outcome.FAIL, "at least 15.5 s behind ours"),
    ],
)
def test_a_clock_is_judged_by_what_stops_the_bridge(skew: Skew | None, outcome: Outcome, words: str) -> None:
    """By the least skew that explains what was seen."""
    found = feed_checks.judged_clock(SETTINGS, skew)
    assert (found.outcome, words in found.seen) == (outcome, True)


def test_no_checkpoint_is_a_first_start() -> None:
    """The setting says where it begins."""
    found = feed_checks.judged_checkpoint(SETTINGS, None, NOW)
    assert (found.outcome, "feed.start = 0" in found.seen) == (Outcome.OK, True)


@pytest.mark.parametrize(
    ("later", "outcome", "words"),
    [
        (0, Outcome.OK, "Live, the position is 30s old"),
        (119, Outcome.OK, "the position is 2m 29s old"),
        (120, Outcome.WARN, "nothing was committed for 2m 1s"),
        (259_170, Outcome.WARN, "the position is 3d old"),
        (259_171, Outcome.FAIL, "the feed cannot give back"),
    ],
)
def test_a_checkpoint_is_judged_by_its_age(later: int, outcome: Outcome, words: str) -> None:
    """Old is what was not renewed for longer than the feed is ever silent; lost what the feed forgot."""
    found = feed_checks.judged_checkpoint(SETTINGS, CHECKPOINT, NOW + later)
    assert (found.outcome, words in found.seen) == (outcome, True)
    if outcome is Outcome.WARN:
        assert "before 2026-09-24T14:12:50Z" in found.advice


def test_the_age_of_a_position_is_by_the_providers_clock() -> None:
    """Which forgets by it."""
    ahead = replace(CHECKPOINT, skew=12.0)
    assert "the position is 42s old" in feed_checks.judged_checkpoint(SETTINGS, ahead, NOW).seen


def test_the_limits_room_is_told() -> None:
    """A reconnect that has to wait is worth knowing before one needs it."""
    assert feed_checks.judged_limits(SETTINGS, None, NOW).outcome is Outcome.OK
    free = feed_checks.judged_limits(SETTINGS, CHECKPOINT, NOW)
    assert (free.outcome, "proper 0 of 5" in free.seen) == (Outcome.OK, True)
    ledger = tuple(Attempt(NOW - 60 + n, 30, False, NOW - 59 + n) for n in range(5))
    spent = feed_checks.judged_limits(SETTINGS, replace(CHECKPOINT, ledger=ledger), NOW)
    assert spent.outcome is Outcome.WARN
    assert "has to wait until 2026-09-21T14:17:" in spent.seen
    assert "proper 5 of 5" in spent.seen


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
    """It refuses to lose data, and mends or leaves the rest."""
    topic = declare(SETTINGS).bets
    found = kafka_checks.judged_topics(
        [Change(topic, a, "detail", harmful=harmful) for a, harmful in changes]
    )
    assert found.outcome is outcome
    assert found.seen.count("settlement.bets: ") == len(changes)


ALL = frozenset({"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"})


def test_rights_that_suffice() -> None:
    """What cannot be asked without harm is named."""
    found = kafka_checks.judged_rights({"settlement.bets": ALL}, frozenset({"READ", "DESCRIBE"}))
    assert (found.outcome, "transactional id" in found.seen) == (Outcome.OK, True)


@pytest.mark.parametrize("right", sorted(kafka_checks.TOPIC_RIGHTS))
def test_a_right_that_is_missing_on_a_topic_is_named(right: str) -> None:
    """With the topic."""
    found = kafka_checks.judged_rights({"a": ALL, "b": ALL - {right}}, frozenset({"READ"}))
    assert (found.outcome, found.seen) == (Outcome.FAIL, f"b: {right} is not allowed")


def test_a_right_that_is_missing_on_the_group_is_named() -> None:
    """Without it nobody can own the feed."""
    found = kafka_checks.judged_rights({}, frozenset({"DESCRIBE"}))
    assert (found.outcome, found.seen) == (Outcome.FAIL, "the leadership group: READ is not allowed")


def test_a_cluster_that_keeps_rights_to_itself_is_no_failure() -> None:
    """But what it tells counts."""
    assert kafka_checks.judged_rights({"a": None}, frozenset({"READ"})).outcome is Outcome.WARN
    assert kafka_checks.judged_rights({"a": None}, frozenset()).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("owners", "members", "outcome", "words"),
    [
        ([], 0, Outcome.WARN, "no members"),
        ([], 2, Outcome.WARN, "2 members, none of which owns"),
        (["10.0.0.1"], 3, Outcome.OK, "owned from 10.0.0.1, 2 standing by"),
    ],
)
def test_an_owner_is_looked_for(owners: list[str], members: int, outcome: Outcome, words: str) -> None:
    """And the standbys are counted."""
    found = kafka_checks.judged_owners("settlement.f.owner", owners, members)
    assert (found.outcome, words in found.seen) == (outcome, True)


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
    """Every subject that is not as it will be is named."""
    found = kafka_checks.judged_standings({f"s{n}": how for n, how in enumerate(standings)})
    assert found.outcome is outcome
    for n, how in enumerate(standings):
        assert (f"s{n}: {how.value}" in found.seen) == (how is not Standing.REGISTERED)


def test_a_scaled_provider_forgets_sooner() -> None:
    """The memory is that of the settings."""
    scaled = SETTINGS.model_copy(update={"limits": LimitsSettings(scale=1_000)})
    assert feed_checks.judged_checkpoint(scaled, CHECKPOINT, NOW + 229).outcome is Outcome.WARN
    assert feed_checks.judged_checkpoint(scaled, CHECKPOINT, NOW + 230).outcome is Outcome.FAIL
