"""What the simulator can do, and what its documentation says it can do."""

from __future__ import annotations

import re
from typing import get_args

from typer.core import TyperOption
from typer.main import get_command

from bridge_sandbox.commands import simulator
from bridge_sandbox.provider.bets import Oddity
from bridge_sandbox.provider.control import Control
from bridge_sandbox.provider.faults import FAULTS
from bridge_sandbox.provider.feed import Provider
from bridge_sandbox.provider.rate_limits import Limits, LimitSettings
from bridge_sandbox.provider.rest.app import Rest
from bridge_sandbox.provider.rest.faults import RestFault
from bridge_sandbox.provider.rest.routes import ENDPOINTS
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.settings import SimulatorSettings
from bridge_sandbox.provider.world.entities import Sizes
from tests.repo.source import ROOT

FEED = (ROOT / "docs" / "simulator.md").read_text("utf-8")
REST = (ROOT / "docs" / "simulator-rest.md").read_text("utf-8")

OPTIONS = {option.name: option for option in get_command(simulator).params if isinstance(option, TyperOption)}


def in_tables(document: str) -> set[str]:
    """Whatever is set as code in a row of a table."""
    rows = re.findall(r"^\|.*\|$", document, re.MULTILINE)
    return set(re.findall(r"`([^`]+)`", "".join(rows)))


def test_every_setting_is_in_a_table() -> None:
    assert SimulatorSettings.model_fields.keys() <= in_tables(FEED)
    assert RestPolicy.model_fields.keys() <= in_tables(REST)
    assert Sizes.model_fields.keys() <= in_tables(REST)
    assert LimitSettings.model_fields.keys() <= in_tables(FEED)
    assert {*get_args(Oddity)} <= in_tables(FEED)


def test_every_option_is_in_a_table() -> None:
    options = {option.opts[0] for option in OPTIONS.values()}
    assert {name for name in in_tables(FEED) if name.startswith("--")} == options
    assert set(re.findall(r"`(--[a-z-]+)", FEED + REST)) <= options


def test_every_fault_is_in_a_table_with_its_choices() -> None:
    for name, kind in FAULTS.items():
        row = next(line for line in FEED.splitlines() if line.startswith(f"| `{name}` |"))
        assert set(re.findall(r"`(\w+)`", row.split("|")[2])) == kind.model_fields.keys(), name
    assert RestFault.model_fields.keys() <= in_tables(REST)
    assert set(ENDPOINTS) <= in_tables(REST)


def test_every_path_of_the_control_endpoint_is_in_the_table() -> None:
    settings = SimulatorSettings(sizes=Sizes(events=1))
    stream = settings.stream(0)
    control = Control(
        Provider(stream, Limits()),
        Rest(stream.world),
        now=lambda: 0,
        inflict=lambda _: 0,
        play=lambda _: 0,
        stop=lambda: 0,
        on_loop=lambda call: call(),
    )
    examples = re.findall(r'^curl (?:-X (\w+) )?"?\$C(/[\w/-]*)', FEED, re.MULTILINE)
    assert {f"{method or 'GET'} {path}" for method, path in examples} <= control.places.keys()
    for place, choices in control.places.items():
        listed = re.sub(r"(/faults/).*", r"\1…", place)
        row = next(line for line in FEED.splitlines() if line.startswith(f"| `{listed}` |"))
        if "/faults" not in place:
            assert set(re.findall(r"`(\w+)`", row.split("|")[2])) == set(choices), place


def test_help_names_the_defaults_of_the_settings() -> None:
    defaults = SimulatorSettings()
    shown = {name: option.default for name, option in OPTIONS.items() if option.default is not None}
    assert (shown.pop("history"), shown.pop("api_rate")) == ("0s", defaults.api.rate)
    assert shown.pop("speed") == f"{defaults.speed:g}"
    names = ("rate", "seed", "odd", "limits_scale", "keep_times")
    assert shown == {name: getattr(defaults, name) for name in names}
    assert f"by default {defaults.port}," in (OPTIONS["port"].help or "")
