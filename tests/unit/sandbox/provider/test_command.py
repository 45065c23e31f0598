"""The settings of `bridge simulate`: a file, and the options of the command line over it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bridge_sandbox.commands import simulator
from bridge_sandbox.provider.command import SettingsError, read_settings
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.settings import SimulatorSettings
from bridge_sandbox.provider.world.entities import Sizes


def test_the_options_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "provider.toml"
    file.write_text(
        'rate = 5\nseed = 3\nsecond = "replace"\n[api]\nrate = 2\nlanguages = ["en"]\n[sizes]\nevents = 7'
    )
    settings = read_settings(file, {"rate": 9, "api.rate": 4})
    assert settings == SimulatorSettings(
        rate=9, seed=3, second="replace", api=RestPolicy(rate=4, languages=("en",)), sizes=Sizes(events=7)
    )
    assert read_settings(None, {}) == SimulatorSettings()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("brust = 5", "brust is not a setting; did you mean burst?"),
        (
            "[limits]\ninitial_window = 5",
            "limits.initial_window is not a setting; did you mean limits.initial_",
        ),
        ("[sizes]\nevent = 5", "sizes.event is not a setting; did you mean sizes.events?"),
        ("disorder_seconds = 5", "disorder_seconds is now called max_out_of_orderness_seconds"),
        ("colour = 5", "colour is not a setting; remove it"),
        ("api = 5", "api: Input should be a valid dictionary"),
        ('[api]\nlanguages = ["en", "xx"]', "api.languages.1: Input should be 'en', 'de'"),
        ("[sizes]\nleagues = 501", "sizes: 501 leagues need 1002 competitors or more"),
        ('auth = "bearer"', "auth = bearer needs auth_value"),
        ("seed = 1\nodd = 2\nrate = 0", "rate: Input should be greater than 0\nodd: "),
        ("seed", "the settings file FILE cannot be read: "),
        ("seed = \ud800", "the settings file FILE cannot be read: "),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "provider.toml"
    file.write_bytes(content.encode(errors="surrogatepass"))
    with pytest.raises(SettingsError) as caught:
        read_settings(file, {"api.rate": 4})
    assert str(caught.value).startswith(message.replace("FILE", str(file)))


def test_a_directory_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no settings file"):
        read_settings(tmp_path, {})


@pytest.mark.parametrize(
    ("option", "topic"), [("--bets", "topic"), ("--bets", "topic:2h"), ("--names", "topic")]
)
def test_a_topic_needs_the_bridge(monkeypatch: pytest.MonkeyPatch, option: str, topic: str) -> None:
    monkeypatch.setitem(sys.modules, "bridge", None)
    ran = CliRunner().invoke(simulator, [option, topic])
    assert ran.exit_code == 2
    fix = 'pip install "settlement-bridge-sandbox[cluster]"; or name a file'
    assert ran.stderr == f"error: {option} {topic} needs the bridge: {fix}\n"


@pytest.mark.parametrize("option", ["--bets", "--names"])
def test_a_recording_that_is_not_there_is_an_error(tmp_path: Path, option: str) -> None:
    ran = CliRunner().invoke(simulator, [option, str(tmp_path / "x")])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == f"error: {tmp_path / 'x'} cannot be read: No such file or directory\n"
