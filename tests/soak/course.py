"""Whether what is measured each minute stays flat, as a table and as plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks import plot, report


class Quantity(NamedTuple):
    """What is measured each minute."""

    name: str
    title: str
    unit: str
    most: float | None
    """At most so many times the median of the middle third may be that of the last: then it is flat.

    None: it is counted, and the least of the last third must not be above that of the middle third. One that
    is left behind by each term is hardly seen in a ratio.
    """
    of_owner: bool = False
    """Whether only an owner has it."""

    @property
    def statistic(self) -> str:
        """What is compared."""
        return "least" if self.most is None else "median"


QUANTITIES = (
    Quantity("rss_mb", "resident memory", "MB", 1.05),
    Quantity("descriptors", "descriptors", "", None),
    Quantity("threads", "threads", "", None),
    Quantity("entries", "entries of the deduplicator", "thousand", 1.1, of_owner=True),
    # Commits wait for a machine that is shared with the broker, the provider and whatever else it does.
    Quantity("commit_ms", "time of a commit", "ms", 1.5, of_owner=True),
)
Sample = Mapping[str, Any]


class Course(NamedTuple):
    """A quantity of a bridge in a role in the last two thirds of the minutes: the median or least of each."""

    middle: float
    last: float

    def is_flat(self, most: float | None) -> bool:
        """Whether the last third is not above the middle one, by more than the quantity may be."""
        return self.last <= self.middle * (1 if most is None else most)


def points(samples: Sequence[Sample], name: str, role: str, quantity: Quantity) -> list[tuple[float, float]]:
    """Return the minutes and values of a bridge in a role."""
    is_owner = role == "owner"
    return [
        (sample["minute"], sample[name][quantity.name])
        for sample in samples
        if sample[name]["owner"] is is_owner and quantity.name in sample[name]
    ]


def courses(samples: Sequence[Sample]) -> dict[tuple[Quantity, str, str], Course | None]:
    """Return the course of each quantity of each bridge in each role; None if it had none in both thirds."""
    third = samples[-1]["minute"] / 3
    found = {}
    for quantity in QUANTITIES:
        statistic = min if quantity.most is None else median
        for name in ("A", "B"):
            for role in ("owner",) if quantity.of_owner else ("owner", "standby"):
                line = points(samples, name, role, quantity)
                middle = [value for minute, value in line if third < minute <= 2 * third]
                last = [value for minute, value in line if minute > 2 * third]
                found[quantity, name, role] = (
                    Course(statistic(middle), statistic(last)) if middle and last else None
                )
    return found


def rising(samples: Sequence[Sample]) -> list[str]:
    """Return what is not flat, in words."""
    return [
        f"{quantity.title} of {name} as {role}: {course.middle:g} → {course.last:g} {quantity.unit}".strip()
        for (quantity, name, role), course in courses(samples).items()
        if course and not course.is_flat(quantity.most)
    ]


def unknown(samples: Sequence[Sample]) -> list[str]:
    """Return what was not measured in both thirds, and so is not known to be flat, in words."""
    return [
        f"{quantity.title} of {name} as {role}"
        for (quantity, name, role), course in courses(samples).items()
        if course is None
    ]


def table(samples: Sequence[Sample]) -> str:
    """Return the courses as a table in Markdown."""
    rows = [
        [
            f"{quantity.statistic} of {quantity.title} of {name} as {role}"
            + (f", {quantity.unit}" if quantity.unit else ""),
            *(f"{value:,.1f}" for value in course),
            f"{course.last / course.middle:.2f}",
            f"{quantity.most or 1:g}",
        ]
        if course
        else [f"{quantity.title} of {name} as {role}", "not measured", "", "", ""]
        for (quantity, name, role), course in courses(samples).items()
    ]
    return report.table(["", "middle third", "last third", "ratio", "at most"], rows)


def pictures(samples: Sequence[Sample]) -> dict[str, str]:
    """Return a plot of each quantity over the minutes, by its name."""
    drawn = {}
    for quantity in QUANTITIES:
        series = {
            f"{name} {role}": line
            for name in ("A", "B")
            for role in ("owner", "standby")
            if (line := points(samples, name, role, quantity))
        }
        if series:
            title = f"Soak: {quantity.title}"
            drawn[f"soak-{quantity.name}"] = plot.lines(title, ("minutes", quantity.unit), series)
    return drawn
