"""Snapshots of a bridge's status by the names of their fields, whatever part has them."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from bridge.observability.status import (
    DeliveryStatus,
    IntakeStatus,
    KnownStatus,
    ProcessStatus,
    StatusSnapshot,
)

T = TypeVar("T")
_PARTS = {
    "process": ProcessStatus,
    "known": KnownStatus,
    "intake": IntakeStatus,
    "delivery": DeliveryStatus,
}
_PART_OF = {field.name: part for part, of in _PARTS.items() for field in dataclasses.fields(of)}


def snapshot(**fields: Any) -> StatusSnapshot:
    """Return a snapshot with these fields."""
    process = {name: fields.pop(name) for name in [*fields] if _PART_OF.get(name) == "process"}
    own = {name: fields.pop(name) for name in [*fields] if name not in _PART_OF}
    return replace(StatusSnapshot(process=ProcessStatus(**process), **own), **fields)


def replace(one: T, **fields: Any) -> T:
    """Return a copy with other values of these fields."""
    changed: Any = one
    if isinstance(one, StatusSnapshot):
        for name in [name for name in fields if name in _PART_OF]:
            part = fields.setdefault(_PART_OF[name], getattr(one, _PART_OF[name]))
            fields[_PART_OF[name]] = dataclasses.replace(part, **{name: fields.pop(name)})
    result: T = dataclasses.replace(changed, **fields)
    return result
