"""A deliberate fault of the bridge: rules that are replaced by wrong ones, and what the judge must find."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce, wraps
from inspect import Parameter, signature
from typing import Any

from bridge.records.checkpoint import Checkpoint
from tests.judge import Anomaly

By = Callable[..., Any]
"""Called with what it replaces, and then with its arguments; for a class, returns the class in its place."""
Rules = Mapping[Any, By]
"""What is replaced, a function, a property or a class of the bridge, or one that it imports → by what."""
_REST = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True, eq=False)
class Fault:
    """One thing that is wrong, the drill in which it shows, and what shows it."""

    drill: str
    expected: Mapping[Anomaly, str]
    """Any of these, and what its first example must say where another fault could cause one as well."""
    name: str
    rules: Rules = field(repr=False)
    records: float = 0.5
    """Records for each bet that is due, at least: one that publishes hardly anything shows something else."""

    def apply(self) -> None:
        """Replace the rules in this process, which must run the bridge as plain Python."""
        for of, by in self.rules.items():
            replaced = _replaced(of, by)
            for holder, name in _places(of):
                setattr(holder, name, replaced)

    def misfits(self) -> list[str]:
        """Return the rules that are nowhere, or that their replacement cannot be called like."""
        return [
            f"{self.name}: {of}: {by}"
            for of, by in self.rules.items()
            if not [*_places(of)] or not (isinstance(of, type) or _fits(of, by))
        ]


SOUND = Fault("", {}, "nothing", {})
"""The bridge as it is, in plain Python like the others."""
GOES_BACK: Rules = {Checkpoint.follows: lambda _, self, other, *, rewound=False: True}
"""Without it, a checkpoint that goes back ends the bridge."""


def _places(of: Any) -> Iterator[tuple[Any, str]]:
    """Yield what has a rule under which name: its class, or all modules of the bridge that import it."""
    *parents, name = getattr(of, "fget", of).__qualname__.split(".")
    if parents:
        yield reduce(getattr, parents, sys.modules[getattr(of, "fget", of).__module__]), name
        return
    for module in [module for name, module in sys.modules.items() if name.startswith("bridge.")]:
        yield from [(module, name) for name, value in vars(module).items() if value is of]


def _replaced(of: Any, by: By) -> Any:
    if isinstance(of, type):
        return by(of)
    if isinstance(of, property):
        return property(_replaced(of.fget, by))

    @wraps(of)
    def replaced(*arguments: Any, **named: Any) -> Any:
        return by(of, *arguments, **named)

    return replaced


def _fits(of: Any, by: By) -> bool:
    """Whether the parameters of `by` after its first are those of `of`, or some of them and the rest."""
    theirs = _parameters(getattr(of, "fget", of))
    _, *ours = _parameters(by)
    named = [it for it in ours if it[1] not in _REST]
    return {*named} <= {*theirs} if named != ours else named == theirs


def _parameters(function: Any) -> list[tuple[Any, ...]]:
    parameters = signature(function).parameters.values()
    return [(it.name, it.kind, it.default is it.empty) for it in parameters]
