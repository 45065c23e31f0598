"""Plots that a browser can draw."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest

from benchmarks.plot import WIDTH, Bar, bars, lines

NAMESPACE = "{http://www.w3.org/2000/svg}"


def found(svg: str, kind: str, name: str) -> list[list[float]]:
    """Attribute `name` of each element of a kind, as numbers."""
    elements = Xml.fromstring(svg).iter(f"{NAMESPACE}{kind}")
    texts = [element.attrib[name] for element in elements if name in element.attrib]
    return [[float(n) for n in text.replace(",", " ").split()] for text in texts if "%" not in text]


def test_bars_are_as_long_as_their_values() -> None:
    """From zero on, and the longest with its spread fits the paper."""
    svg = bars("a < b", [Bar("one", 50, 40, 90), Bar("two", 100, 100, 120)])
    (first,), (second,) = found(svg, "rect", "width")
    assert second == pytest.approx(2 * first, abs=0.2)
    assert max(end for (end,) in found(svg, "line", "x2")) < WIDTH


@pytest.mark.parametrize("logarithmic", [False, True])
def test_lines_stay_inside_their_grid(logarithmic: bool) -> None:
    """Upwards is more, and what begins at zero has its zero."""
    points = [(100.0, 3.0), (1000.0, 30.0), (5000.0, 270.0)]
    svg = lines("delay", ("rate", "ms"), {"p50": points}, logarithmic=logarithmic)
    [places] = found(svg, "polyline", "points")
    across, upward = places[::2], places[1::2]
    assert across == sorted(across)
    assert upward == sorted(upward, reverse=True)
    grid = [y for (y,) in found(svg, "line", "y1")]
    assert min(grid) <= min(upward) <= max(upward) <= max(grid)
    labels = [text.text for text in Xml.fromstring(svg).iter(f"{NAMESPACE}text")]
    assert ("0" in labels) is not logarithmic


def test_tenfold_is_the_same_distance_everywhere_on_a_logarithmic_axis() -> None:
    """So that low rates can be told apart beside high ones."""
    svg = lines("t", ("x", "y"), {"a": [(1, 7), (10, 70), (100, 700)]}, logarithmic=True)
    [(x1, y1, x2, y2, x3, y3)] = found(svg, "polyline", "points")
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)


@pytest.mark.parametrize(
    ("values", "logarithmic", "ticks"),
    [
        ((0, 10_003), False, ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]),
        ((3, 123), False, ["0", "50", "100", "150"]),
        ((100, 5_000), True, ["100", "200", "500", "1,000", "2,000", "5,000"]),
        ((12, 140), True, ["10", "20", "50", "100", "200"]),
        ((7, 7), True, ["5", "10"]),
    ],
)
def test_a_grid_has_round_numbers_and_little_room_to_spare(
    values: tuple[float, float], logarithmic: bool, ticks: list[str]
) -> None:
    """A little more than a round number needs no other."""
    points = [(value, value) for value in values]
    svg = lines("t", ("x", "y"), {"a": points}, logarithmic=logarithmic)
    texts = [text.text for text in Xml.fromstring(svg).iter(f"{NAMESPACE}text")]
    assert texts[1 : 1 + 2 * len(ticks)] == [*ticks, *ticks]


def test_names_do_not_lie_on_each_other() -> None:
    """Where two lines end at the same value."""
    svg = lines("t", ("x", "y"), {"a": [(0.0, 0.0), (1.0, 5.0)], "b": [(0.0, 1.0), (1.0, 5.0)]})
    texts = {t.text: float(t.attrib["y"]) for t in Xml.fromstring(svg).iter(f"{NAMESPACE}text")}
    assert 13 <= abs(texts["a"] - texts["b"]) < 30


def test_a_long_name_stays_on_the_paper() -> None:
    """Whoever is told apart by the end of it must see that."""
    name = "bare + checkpoint, p99"
    svg = lines("t", ("x", "y"), {name: [(0.0, 0.0), (1.0, 5.0)]})
    [at] = [float(t.attrib["x"]) for t in Xml.fromstring(svg).iter(f"{NAMESPACE}text") if t.text == name]
    assert at + 7.5 * len(name) <= WIDTH
