"""A bridge with a setting at either end of its range publishes everything, as with any other value."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain

import pytest
from annotated_types import Ge, Le
from pydantic import BaseModel, ValidationError

from bridge.config import Settings
from tests.virtual.world import World, in_world


def ends() -> Iterator[tuple[str, str, float]]:
    """Yield section, name and value: the minimum and maximum of each number with bounds of its own."""
    for section in ("feed", "limits", "batch"):
        model = Settings.model_fields[section].annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        for name, field in model.model_fields.items():
            for bound in field.metadata:
                value = bound.ge if isinstance(bound, Ge) else bound.le if isinstance(bound, Le) else None
                if isinstance(value, int | float) and accepted(section, name, value):
                    yield section, name, value


def accepted(section: str, name: str, value: float) -> bool:
    """Return whether the value is accepted with the other defaults."""
    try:
        Settings.model_validate({section: {name: value}})
    except ValidationError:
        return False
    return True


def test_there_are_ends() -> None:
    assert {"idle_timeout_seconds", "initial_window_seconds", "max_age_ms"} <= {*chain(*map(tuple, ends()))}


@pytest.mark.parametrize(("section", "name", "value"), [*ends()])
@in_world(history=60)
async def test_a_setting_at_its_end_works(world: World, section: str, name: str, value: float) -> None:
    changed = getattr(world.settings, section).model_copy(update={name: value})
    world.settings = world.settings.model_copy(update={section: changed})
    world.start()
    await asyncio.sleep(300)
    await world.check()
