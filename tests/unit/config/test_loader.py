"""Settings: their sources, and the errors of wrong ones."""

from __future__ import annotations

import json
import re
import time
import timeit
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bridge.config import Settings, age_seconds, env_name, load, parse_start
from bridge.config.loader import REMOVED, RENAMED
from bridge.errors import SettingsError
from bridge.masking import concealed
from tests.unit.config.given import complaint, toml, variables

SECRET = "s3cret"


# Where they come from.


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = toml(tmp_path, '[feed]\nname = "file"\nidle_timeout_seconds = 7\n[batch]\nmax_records = 3\n')
    monkeypatch.setenv("BRIDGE_FEED__NAME", "environment")
    monkeypatch.setenv("bridge_batch__max_bytes", "9")
    settings = load(file)
    assert (settings.feed.name, settings.feed.idle_timeout_seconds) == ("environment", 7)
    assert (settings.batch.max_records, settings.batch.max_bytes) == (3, 9)


@pytest.mark.parametrize("form", [str, Path])
@pytest.mark.parametrize(
    ("given", "variable", "read"),
    [
        ("given", None, "given"),
        ("given", "variable", "given"),
        (None, "variable", "variable"),
        (None, None, "bridge"),
        (None, "", None),
        ("given", "", "given"),
    ],
)
def test_one_file_is_read(
    form: type[Any],
    given: str | None,
    variable: str | None,
    read: str | None,
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    for name in ("given", "variable", "bridge"):
        toml(tmp_path, f'[feed]\nname = "{name}"\n', name)
    monkeypatch.chdir(tmp_path)
    if variable is not None:
        monkeypatch.setenv("BRIDGE_CONFIG", variable and f"{variable}.toml")
    settings = load(given and form(f"{given}.toml"))
    assert settings.feed.name == (read or "settlement-v4")
    assert settings.file == (Path(f"{read}.toml") if read else None)


def test_a_list_is_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_FEED__OPTIONAL_FIELDS", '["data.payout"]')
    assert load().feed.optional_fields == {"data.payout"}
    monkeypatch.setenv("BRIDGE_FEED__OPTIONAL_FIELDS", "data.payout")
    assert complaint() == 'BRIDGE_FEED__OPTIONAL_FIELDS must be JSON, such as ["data.partialRefund"]'
    monkeypatch.setenv("BRIDGE_FEED__OPTIONAL_FIELDS", "[]")
    monkeypatch.setenv("BRIDGE_API__LANGUAGE_KEYS", "de-DE=de")
    assert complaint() == 'BRIDGE_API__LANGUAGE_KEYS must be JSON, such as {"de-DE": "de"}'


def test_scale_shortens_the_memory_of_the_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_LIMITS__SCALE", "100")
    assert load().limits.memory_seconds == 2592


# What is said of wrong ones.


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("feed.base_url", "provider.example", "must be an address"),
        ("feed.base_url", "ftp://provider.example", "must be an address such as https://"),
        (
            "feed.base_url",
            "wss://provider.example/feed/settlement/v4/",
            "must end before /feed/settle",
        ),
        ("feed.base_url", "wss://provider.example./", "must not have a dot at the end of the host"),
        ("feed.base_url", "https://provider.example?key=1", ".* without a query"),
        ("feed.base_url", "https://provider.example:99999", "must be an address"),
        ("feed.base_url", "https://provider.example:port", "must be an address"),
        ("feed.base_url", "https://user@provider.example", "must be an address"),
        ("feed.base_url", "https://:80", "must be an address"),
        ("feed.base_url", "https://☃.example", "must be ASCII: write an internationalized name"),
        ("feed.base_url", "https://provider.example/\x01", "must be ASCII"),
        ("feed.base_url", "https://[::1", "must be an address"),
        ("feed.base_url", "https://[v1.x]", "must be an address"),
        ("feed.base_url", "https://[fe80::1%eth0]x.example", "must be an address"),
        ("api.base_url", "https://300.1.1.1", "must be an address"),
        ("feed.base_url", f"https://{'a' * 64}.example", "must be an address"),
        ("feed.name", "a b", "must match"),
        ("feed.name", "translations", "is reserved"),  # it would share a transactional id with the job,
        ("feed.name", "currencies", "is reserved"),  # and the two would fence each other
        ("feed.on_gap", "ignore", "must be 'stop' or"),
        ("feed.auth", "basic", "must be 'none', 'bearer'"),
        ("feed.ping_reply", "pong", 'must be "none", "echo" or a template that contains {pingId}'),
        ("feed.start", "yesterday", "must be 0, an age or a time: 'yesterday' is not a time: give one"),
        ("feed.idle_timeout_seconds", "0", "must be greater than 0, not 0$"),
        ("feed.idle_timeout_seconds", "inf", "must be a finite"),
        ("feed.live_after_pings_seconds", "-1", "must be greater than or"),
        ("feed.safety_margin_seconds", "nan", "must be a"),
        ("limits.bucket_drain", "0", "must be greater than or"),
        ("topics.prefix", "a/b", "must match"),
        ("topics.min_compaction_lag_days", "3.9", "must be greater than or equal to 4"),
        ("batch.max_records", "0", "must be"),
        ("web.port", "65536", "must be"),
        ("web.host", "", "must have at least 1 character$"),
        ("registry.url", "registry:8081", "must be an address such"),
        ("registry.url", "http://a:81,http://b:81", "must be an address such"),
        ("api.sport_id_parameter", "", "must have at least 1"),
    ],
)
def test_a_wrong_value_is_named_with_the_fix(
    path: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable := env_name(*path.split(".")), value)
    assert re.match(re.escape(f"{path} ({variable}): ") + said, complaint())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("FEED__MAX_CLOCK_SKEW_SECONDS", "0", "must be greater than or equal to 1"),
        ("FEED__MAX_CLOCK_SKEW_SECONDS", "31", "must not be above safety_margin_seconds = 30"),
        ("FEED__REFUSAL_CLOSE_CODES", "[99]", "feed.refusal_close_codes"),
        ("FEED__AUTH", "bearer", "auth = bearer needs either auth_value or auth_value_file"),
        ("FEED__START", "2999-01-01T00:00:00Z", "feed.start (BRIDGE_FEED__START) = 2999-01-01T00:00:00Z "),
        ("LIMITS__BUCKET_SECONDS", "3599", "must not be below large_age_seconds = 3600"),
        ("LIMITS__MAX_AGE_SECONDS", "3599", "3600 must not be above max_age_seconds = 3599"),
        ("REGISTRY__TOKEN_ENDPOINT_URL", "https://i.example", "needs user and either password or password_f"),
        ("REGISTRY__IDENTITY_POOL", "pool\n", "must match"),
        ("API__KEEP_DAYS", "2", "recent_days = 3 must not be above keep_days = 2"),  # or names come and go
        ("KAFKA__SECURITY_PROTOCOL", "TLS", 'librdkafka does not accept it: Invalid value "TLS"'),
        # Typos, with the nearest name.
        ("KAFKA__LINGERS_MS", "1", "kafka.lingers_ms {name}: librdkafka does not accept it: No such"),
        ("KAFKA__LINGERS_MS", "1", 'property: "lingers.ms"; did you mean kafka.linger_ms?'),
        ("KAFKA__SASL_USER", "me", 'property: "sasl.user"; did you mean kafka.sasl_username?'),
        ("KAFKA__SSL_CA_LOCATON", "f", 'property: "ssl.ca.locaton"; did you mean kafka.ssl_ca_location?'),
        ("KAFKA__METADATA_BROKER_LIST", "b:1", "is not a setting; did you mean kafka.bootstrap_servers?"),
        ("FEED__BASE_ULR", "x", "{name} is not a setting; did you mean feed.base_url?"),
        ("FEED__COLOUR", "x", "feed.colour {name} is not a setting; remove it"),
        ("FED__NAME", "x", "BRIDGE_FED__NAME is not a setting of the bridge. Did you mean {feed}NAME?"),
        ("FEED_PROXY", "x", "is not a setting of the bridge. Did you mean {feed}PROXY?"),
        ("KAFAK__SSL_CA_LOCATION", "x", "is not a setting of the bridge. Did you mean BRIDGE_KAFKA__…?"),
        ("XYZZY", "x", "BRIDGE_XYZZY is not a setting of the bridge"),
    ],
)
def test_settings_that_are_unknown_or_contradict_each_other_are_named(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"BRIDGE_{name}", value)
    assert said.format(name=f"(BRIDGE_{name})", feed="BRIDGE_FEED__") in complaint()


@pytest.mark.parametrize("host", ["[::1]:8080", "u:p%5D@[fd00::1]", "127.0.0.1:80", "127.1", "1.example"])
@pytest.mark.parametrize("name", ["FEED__BASE_URL", "FEED__PROXY"])
def test_an_address_may_have_an_ip_address(name: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"BRIDGE_{name}", f"http://{host}")
    load()


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("data.foo", "data.payout"),
        ("data.betId", "data.isRejected"),
        ("limitsFactor", "data.selections[].limitsFactor"),
        ("data.selections.limitsFactor", "data.selections[].limitsFactor"),
        ("data.selections[0].limitsFactor", "data.selections[].limitsFactor"),
        ("data.selections[].type", "data.selections[].market.type"),
        ("data", "data.payout"),
        ("", "data."),
    ],
)
def test_a_field_that_cannot_be_omitted_is_named_with_the_nearest(
    path: str, nearest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIDGE_FEED__OPTIONAL_FIELDS", json.dumps([path, "data.payout"]))
    said = complaint()
    assert said.startswith(f"feed.optional_fields (BRIDGE_FEED__OPTIONAL_FIELDS): {path!r} is not a ")
    assert f"Did you mean {nearest}" in said


@pytest.mark.parametrize("section", ["FEED", "API"])
@pytest.mark.parametrize(
    "address",
    [
        "ftp://u:s3cret@proxy",
        "proxy.example:3128",
        "http://u:s3cret@p:99999",
        "http://u:s3cret@[::",
        "http://u:s3cret@300.1.1.1:3128",
        "http://u:s3cret@[v1.x]",
        "http://u:s3cret@[fe80::1%eth0]x.example",
        "http://u:s3cret@[::1][]",
        "nonsense",
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_and_not_shown(
    section: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"BRIDGE_{section}__PROXY", address)
    assert f"(BRIDGE_{section}__PROXY): must be an address such as" in (said := complaint())
    assert SECRET not in said
    monkeypatch.setenv(f"BRIDGE_{section}__PROXY", "socks5://proxy.example")
    assert "SOCKS needs the package" in complaint()


def test_all_wrong_settings_are_reported_at_once(tmp_path: Path) -> None:
    file = toml(
        tmp_path,
        "proxy = 'none'\n[feed]\nidle_timeout_seconds = -1\n[batch]\nmax_record = 3\n[tpics]\nprefix = 'x'\n",
    )
    assert complaint(file).splitlines() == [
        f"feed.idle_timeout_seconds ({file}): must be greater than 0, not -1",
        f"batch.max_record ({file}) is not a setting; did you mean batch.max_records?",
        f"proxy ({file}) is not a setting; did you mean feed.proxy?",
        f"tpics ({file}) is not a setting; did you mean topics?",
    ]


@pytest.mark.parametrize("of_file", [True, False], ids=["file", "environment"])
def test_a_value_of_another_type_is_answered_with_an_example(
    of_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        (section, key): default
        for section, field in Settings.model_fields.items()
        for key, default in field.default
        if of_file or isinstance(default, bool | int | float)
    }
    for section, key in settings:
        if not of_file:
            monkeypatch.setenv(env_name(section, key), "many")
        else:
            file = toml(tmp_path, f"[{section}]\n{key} = [[]]\n")
            said = complaint(file)
            assert re.match(rf"{section}\.{key} \({file}\): must be .*('|such as .+)", said), said
    if not of_file:
        lines = complaint().splitlines()
        assert len(lines) == len(settings)
        assert [
            line for line in lines if not re.fullmatch(r".+: must be [a-z ]+, such as [\w.]+", line)
        ] == []


def test_the_values_of_a_table_and_a_section_have_examples_too(tmp_path: Path) -> None:
    said = complaint(file := toml(tmp_path, "feed = 3\n[api]\nlanguage_keys = 3\n"))
    assert said.splitlines() == [
        f"feed: must be a table, such as [feed] ({file})",
        f'api.language_keys ({file}): must be a table, such as {{"de-DE" = "de"}}',
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[feed]\nstart = "4d"', "feed.start ({file}) = 4d is beyond"),
        ('[feed]\nstart = "71h59m55s"', "feed.start ({file}) = 71h59m55s is beyond"),
        ('[feed]\nstart = "2999-01-01T00:00:00Z"', "feed.start ({file}) = 2999-01-01T00:00:00Z is in"),
        (
            '[feed]\nauth = "bearer"',
            "feed: auth = bearer needs either auth_value or auth_value_file ({file})",
        ),
        ("[feed]\nsafety_margin_seconds = 259200", "the feed's memory ({file})"),
        ('[feed]\nauth = "bearer"\nauth_value = "a b"', "feed.auth_value ({file}) holds a text that"),
        ('[api]\ntoken_file = "{empty}"', "api.token_file ({file}): cannot read {empty}: it is empty"),
        ('[kafka]\nsasl_password_file = "{empty}"', "kafka.sasl_password_file ({file}): cannot read {empty}"),
        ('[registry]\nca_file = "{empty}"', "registry.ca_file ({file}): cannot use {empty}"),
        ("[feed]\n", "Set BRIDGE_FEED__BASE_URL, or base_url under [feed] in {file}."),
    ],
)
def test_an_error_names_the_file_that_has_the_value(text: str, said: str, tmp_path: Path) -> None:
    (empty := tmp_path / "empty").touch()
    file = toml(tmp_path, text.replace("{empty}", str(empty)))
    with pytest.raises(SettingsError) as caught:
        load(file).require("feed.base_url", "api.base_url", "kafka.bootstrap_servers", "registry.url")
    assert said.format(file=file, empty=empty) in str(caught.value)


def test_what_is_told_later_names_the_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_KAFKA__CLIENT_ID", "c")
    load(file := toml(tmp_path, "[kafka]\nbootstrap_servers = 'b:1'\n[feed]\nname = 'f'\n"))
    told = concealed("tried BRIDGE_KAFKA__BOOTSTRAP_SERVERS, kafka.client_id (BRIDGE_KAFKA__CLIENT_ID)")
    assert told == f"tried kafka.bootstrap_servers ({file}), kafka.client_id (BRIDGE_KAFKA__CLIENT_ID)"
    assert concealed("feed.name (BRIDGE_FEED__NAME)") == f"feed.name ({file})"
    assert concealed("tried b:1 (BRIDGE_KAFKA__BOOTSTRAP_SERVERS): no") == (
        f"tried b:1 (kafka.bootstrap_servers in {file}): no"
    )
    assert concealed("(BRIDGE_FEED__NAME is f)") == f"(feed.name ({file}) is f)"


@pytest.mark.parametrize("piece", ["(BRIDGE_", "(BRIDGE_FEED__NAME) "])
def test_a_text_of_others_costs_what_its_length_is(piece: str, tmp_path: Path) -> None:
    load(toml(tmp_path, "[feed]\nname = 'f'\n"))

    def seconds(times: int) -> float:
        text = piece * times
        return min(timeit.repeat(lambda: concealed(text), timer=time.thread_time, number=1, repeat=3))

    assert seconds(32_000) < 24 * seconds(4_000)  # eight times the text: of the square it would be 64


def test_an_entry_of_a_list_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = toml(tmp_path, "[api]\nkinds = ['markets']\n")
    expected = rf"api\.kinds \({file}\): must be 'sport', .*'market-type-template', not 'markets'$"
    [line] = complaint(file).splitlines()
    assert re.match(expected, line)
    monkeypatch.setenv("BRIDGE_API__KINDS", "markets")
    assert complaint().endswith('must be JSON, such as ["sport", "region"]')


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sasl = {a = 1}", "sasl must be a string, a number or true/false; write _ for the dots of a prop"),
        ('"bootstrap.servers" = "b"', "bootstrap.servers is not a setting; did you mean kafka.bootstrap_s"),
        ('bootstrap.servers = "b"', "bootstrap is not a setting; did you mean kafka.bootstrap_servers?"),
    ],
)
def test_a_property_of_kafka_is_written_with_underscores(line: str, said: str, tmp_path: Path) -> None:
    name, _, rest = said.partition(" ")
    file = toml(tmp_path, f"[kafka]\n{line}\n")
    assert complaint(file).startswith(f"kafka.{name} ({file}): {rest}")


def test_a_variable_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_FEED", "x")
    file = toml(tmp_path, "[feed]\nname = 'f'\nstart = '1h'\n")
    assert complaint(file) == 'BRIDGE_FEED must be JSON, such as {"…": "…"}'
    monkeypatch.delenv("BRIDGE_FEED")
    monkeypatch.setenv("bridge_feed", "x")
    assert 'field "feed"' in complaint(file)
    monkeypatch.delenv("bridge_feed")
    monkeypatch.setenv("BRIDGE_FEED", "3")
    assert complaint(file).startswith("feed: must be a table")
    monkeypatch.setenv("BRIDGE_FEED", '{"name": "section"}')
    monkeypatch.setenv("BRIDGE_API__QUERY__LEAGUES", '{"active": "true"}')
    settings = load(file)
    assert (settings.feed.name, settings.feed.start) == ("section", "1h")
    assert settings.api.query == {"leagues": {"active": "true"}}
    monkeypatch.setenv("BRIDGE_FEED__NAME", "setting")
    assert load(file).feed.name == "setting"


def test_all_missing_settings_of_a_command_are_named() -> None:
    settings = load()
    settings.require("feed.name")
    with pytest.raises(SettingsError) as caught:
        settings.require("feed.name", "feed.base_url", "registry.url")
    first, second = str(caught.value).splitlines()
    assert first.startswith("feed.base_url is not set. Set BRIDGE_FEED__BASE_URL, or base_url under [feed]")
    assert second.startswith("registry.url is not set. Set BRIDGE_REGISTRY__URL, or url under [registry]")


@pytest.mark.parametrize("content", [None, ""], ids=["none", "empty"])
def test_files_of_the_sections_that_a_command_needs_must_be_usable(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    given = {"FEED__AUTH": "bearer", "REGISTRY__USER": "u", "KAFKA__BOOTSTRAP_SERVERS": "b:1"}
    secrets = ["FEED__AUTH_VALUE", "REGISTRY__PASSWORD", "API__TOKEN", "KAFKA__SASL_PASSWORD"]
    given |= dict.fromkeys([f"{name}_FILE" for name in secrets], str(file))
    given |= dict.fromkeys(["FEED__CA_FILE", "API__CA_FILE", "REGISTRY__CA_FILE"], str(file))
    variables(monkeypatch, **given)
    settings = load()
    settings.require("batch.max_records")
    with pytest.raises(SettingsError) as caught:
        settings.require("feed.name", "kafka.bootstrap_servers")
    expected = [
        f"BRIDGE_FEED__AUTH_VALUE_FILE: cannot read {file}: ",
        f"BRIDGE_KAFKA__SASL_PASSWORD_FILE: cannot read {file}: ",
        "feed.ca_file (BRIDGE_FEED__CA_FILE): cannot use ",
    ]
    lines = str(caught.value).splitlines()
    assert [line.startswith(start) for line, start in zip(lines, expected, strict=True)] == [True] * 3
    assert len(settings.unusable(*Settings.model_fields)) == 7


@pytest.mark.parametrize(
    ("auth", "name", "value", "file", "said"),
    [
        ("bearer", None, "x", None, None),
        ("bearer", None, None, "x", None),
        ("bearer", None, "x", "x", "needs either"),
        ("header", "X-Key", "x", None, None),
        ("header", None, "x", None, "needs auth_name"),
        ("header", "X Key", "x", None, "must be the name of a header"),
        ("query", "key", None, "x", None),
        ("query", None, None, "x", "needs auth_name"),
        ("query", "revision", "x", None, "the bridge's own parameter"),
    ],
)
def test_a_credential_is_complete(
    auth: str, name: str | None, value: str | None, file: str | None, said: str | None, monkeypatch: Any
) -> None:
    given = {"": auth, "_NAME": name, "_VALUE": value, "_VALUE_FILE": file}
    variables(monkeypatch, **{f"FEED__AUTH{key}": text for key, text in given.items() if text is not None})
    if said is None:
        assert load().feed.auth == auth
    else:
        assert said in complaint()


# Kafka's own.


def test_any_property_of_librdkafka_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_KAFKA__BOOTSTRAP_SERVERS", "one:9092,two:9092")
    monkeypatch.setenv("BRIDGE_KAFKA__SECURITY_PROTOCOL", "SASL_SSL")
    file = toml(
        tmp_path, '[kafka]\nsocket_keepalive_enable = true\nlinger_ms = 3\nsecurity_protocol = "SSL"\n'
    )
    assert load(file).kafka.properties() == {
        "bootstrap.servers": "one:9092,two:9092",
        "security.protocol": "SASL_SSL",
        "socket.keepalive.enable": True,
        "linger.ms": 3,
    }


# Small things.


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("3d", 259_200),
        ("0s", 0),
        ("1m55s", 115),
        ("1d 4h", 100_800),
    ],
)
def test_an_age_is_made_of_numbers_and_units(text: str, seconds: int) -> None:
    assert age_seconds(text) == seconds
    assert parse_start(text, now=1_790_000_000.9) == 1_790_000_000 - seconds


@pytest.mark.parametrize("text", ["", "90", "1.5h", "-2d", "2 d", "2w", "d", "1h  2m", "1h ", "٣h"])
def test_other_ages_are_refused_with_examples(text: str) -> None:
    with pytest.raises(SettingsError, match="is not an age such as 90s, 30m, 2h, 3d or 1h30m"):
        age_seconds(text)


def test_a_start_is_0_or_a_time_with_its_zone() -> None:
    assert parse_start("0", now=0.0) is None
    assert parse_start("2026-01-31T12:00:00Z", now=0.0) == 1_769_860_800
    assert parse_start("2026-01-31T12:00:00.9+02:00", now=0.0) == 1_769_853_600


@pytest.mark.parametrize("text", ["", "1", "2026-01-31", "2026-01-31T12:00:00", "now"])
def test_an_ambiguous_start_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^must be 0, an age or a time: .* with its zone such as .*, or an age such as 2h"
    ):
        parse_start(text, now=0.0)


REFUSED = {old: f"is now called {new} ({env_name(*new.split('.'))})" for old, new in RENAMED.items()} | {
    former: f"is no longer a setting: {why}" for former, why in REMOVED.items()
}


@pytest.mark.parametrize("old", REFUSED)
def test_an_old_name_is_refused_with_the_new_one_or_the_reason(
    old: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    section, name = old.split(".")
    file = toml(tmp_path, f"[{section}]\n{name} = 1\n")
    assert complaint(file).startswith(f"{old} ({file}) {REFUSED[old]}")
    monkeypatch.setenv(variable := env_name(section, name), "1")
    assert complaint(file).startswith(f"{old} ({variable}) {REFUSED[old]}")
    if old in RENAMED:
        assert RENAMED[old].split(".")[1] in Settings.model_fields[section].annotation.model_fields  # type: ignore[union-attr]


def test_settings_cannot_be_changed() -> None:
    settings = load()
    with pytest.raises(ValidationError):
        settings.feed.name = "other"  # type: ignore[misc]
