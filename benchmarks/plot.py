"""Plots as SVG, written by hand: bars, and lines over two axes. Pure: figures in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, log10
from typing import NamedTuple

WIDTH = 720
_LEFT, _RIGHT, _TOP, _BOTTOM = 150, 90, 44, 46
_BAR, _GAP, _LINES_HEIGHT = 24, 10, 340
_WIDEST = 8
"""Of a character of a label, on average."""
_COLOURS = ("#1f5fa8", "#c2571a", "#3d8a4f", "#8a4fa3", "#7a7a7a", "#b02a4c", "#2a8f97", "#8a7a1f")
_STYLE = (
    f".bar{{fill:{_COLOURS[0]}}}"
    "text{font:13px sans-serif}.title{font-size:15px;font-weight:bold}"
    ".grid{stroke:#ddd;stroke-width:1}.line{fill:none;stroke-width:2}"
)


class Bar(NamedTuple):
    """A bar with its spread: from the least to the most of what `value` is the median of."""

    label: str
    value: float
    least: float
    most: float


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars from 0, one below the other, each with its value and a mark for its spread."""
    height = _TOP + len(rows) * (_BAR + _GAP) + 10
    scale = (WIDTH - _LEFT - _RIGHT) / max(row.most for row in rows)
    parts = []
    for i, row in enumerate(rows):
        top, middle = _TOP + i * (_BAR + _GAP), _TOP + i * (_BAR + _GAP) + _BAR / 2
        parts += [
            _text(_LEFT - 8, middle + 5, row.label, "end"),
            f'<rect x="{_LEFT}" y="{top}" width="{row.value * scale:.1f}" height="{_BAR}" class="bar"/>',
            _segment(_LEFT + row.least * scale, middle, _LEFT + row.most * scale, middle, "#222"),
            _text(_LEFT + row.most * scale + 8, middle + 5, f"{row.value:,.6g}"),
        ]
    return _svg(title, height, parts)


def lines(
    title: str,
    axes: tuple[str, str],
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    logarithmic: bool = False,
) -> str:
    """A line through the points of each series, over a grid; `axes` names x and y.

    Both axes are `logarithmic`, or both begin at 0.
    """
    points = [point for line in series.values() for point in line]
    right = max(_RIGHT + 60, 10 + _WIDEST * max(len(name) for name in series))
    across = _Axis([x for x, _ in points], _LEFT - 70, WIDTH - right, logarithmic)
    upward = _Axis([y for _, y in points], _LINES_HEIGHT - _BOTTOM, _TOP, logarithmic)
    parts = []
    for x in across.ticks:
        at = across.at(x)
        parts += [
            f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{_LINES_HEIGHT - _BOTTOM}"/>',
            _text(at, _LINES_HEIGHT - _BOTTOM + 18, f"{x:,.6g}", "middle"),
        ]
    for y in upward.ticks:
        at = upward.at(y)
        parts += [
            f'<line class="grid" x1="{across.low}" y1="{at:.1f}" x2="{across.high}" y2="{at:.1f}"/>',
            _text(across.low - 8, at + 4, f"{y:,.6g}", "end"),
        ]
    taken: list[float] = []
    for i, (name, line) in enumerate(series.items()):
        path = " ".join(f"{across.at(x):.1f},{upward.at(y):.1f}" for x, y in line)
        colour = _COLOURS[i % len(_COLOURS)]
        label = upward.at(line[-1][1]) + 4
        while any(abs(label - other) < 13 for other in taken):  # names do not lie on each other
            label += 13
        taken.append(label)
        parts += [
            f'<polyline class="line" points="{path}" stroke="{colour}"/>',
            _text(across.high + 6, label, name, colour=colour),
        ]
    parts += [
        _text((across.low + across.high) / 2, _LINES_HEIGHT - 8, axes[0], "middle"),
        _text(10, _TOP - 8, axes[1]),
    ]
    return _svg(title, _LINES_HEIGHT, parts)


class _Axis:
    """From values to places on the paper, with ticks at round values."""

    def __init__(self, values: Sequence[float], low: float, high: float, logarithmic: bool) -> None:
        self.low, self.high = low, high
        self._logarithmic = logarithmic
        if logarithmic:
            first, last = int(log10(min(values)) // 1), ceil(log10(max(values)))
            self.ticks = [10.0**power for power in range(first, max(last, first + 1) + 1)]
        else:
            step = _round_step(max(values) / 5)
            self.ticks = [step * i for i in range(ceil(max(values) / step) + 1)]

    def at(self, value: float) -> float:
        first, last = self.ticks[0], self.ticks[-1]
        if self._logarithmic:
            share = log10(value / first) / log10(last / first)
        else:
            share = (value - first) / (last - first)
        return self.low + share * (self.high - self.low)


def _round_step(least: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** (log10(least) // 1) if least > 0 else 1.0
    return next((power * digit for digit in (1, 2, 5) if power * digit >= least), power * 10)


def _segment(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="2"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "#222") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="10" y="22" class="title">{escape(title)}</text>',
    ]
    return "\n".join([*head, *parts, "</svg>", ""])
