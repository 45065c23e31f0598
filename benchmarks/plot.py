"""Plots as SVG, written by hand: bars, lines over two axes, flame graphs. Pure: figures in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, log10
from typing import NamedTuple
from zlib import crc32

WIDTH = 720
_LEFT, _RIGHT, _TOP, _BOTTOM = 150, 90, 44, 46
_BAR, _GAP, _LINES_HEIGHT = 24, 10, 340
_TINTS = ("#f6c98f", "#f2b36b", "#f7d9a8", "#eda25a", "#f9e3bd", "#f0bb80")
_STOREY, _NARROWEST = 19, 1.0
_OVER = 0.01
"""How far a value may be over the last tick, of itself: 10,000 messages and a few fit a grid of 10,000."""
_WIDEST = 8
"""Of a character of a label, on average."""
_COLOURS = ("#1f5fa8", "#c2571a", "#3d8a4f", "#8a4fa3", "#7a7a7a", "#b02a4c", "#2a8f97", "#8a7a1f")
_STYLE = (
    f".bar{{fill:{_COLOURS[0]}}}"
    "text{font:13px sans-serif}.title{font-size:15px;font-weight:bold}"
    ".grid{stroke:#ddd;stroke-width:1}.line{fill:none;stroke-width:2}"
)


Stack = tuple[str, ...]
"""Names of calls, the outermost first."""


class Bar(NamedTuple):
    """A bar with its spread: from the least to the most of what `value` is the median of."""

    label: str
    value: float
    least: float
    most: float


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars from 0, one below the other, each with its value and a mark for its spread."""
    height = _TOP + len(rows) * (_BAR + _GAP) + 10
    left = max(_LEFT, 8 + _WIDEST * max(len(row.label) for row in rows))
    scale = (WIDTH - left - _RIGHT) / max(row.most for row in rows)
    parts = []
    for i, row in enumerate(rows):
        top, middle = _TOP + i * (_BAR + _GAP), _TOP + i * (_BAR + _GAP) + _BAR / 2
        parts += [
            _text(left - 8, middle + 5, row.label, "end"),
            f'<rect x="{left}" y="{top}" width="{row.value * scale:.1f}" height="{_BAR}" class="bar"/>',
            _segment(left + row.least * scale, middle, left + row.most * scale, middle, "#222"),
            _text(left + row.most * scale + 8, middle + 5, f"{row.value:,.6g}"),
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
    place = 0.0
    ends = sorted((upward.at(line[-1][1]) + 4, name) for name, line in series.items())
    labels: dict[str, float] = {}
    for end, name in ends:  # from the top, so that names do not lie on each other and keep their order
        labels[name] = place = max(end, place + 13)
    for i, (name, line) in enumerate(series.items()):
        path = " ".join(f"{across.at(x):.1f},{upward.at(y):.1f}" for x, y in line)
        colour = _COLOURS[i % len(_COLOURS)]
        parts += [
            f'<polyline class="line" points="{path}" stroke="{colour}"/>',
            _text(across.high + 6, labels[name], name, colour=colour),
        ]
    parts += [
        _text((across.low + across.high) / 2, _LINES_HEIGHT - 8, axes[0], "middle"),
        _text(10, _TOP - 8, axes[1]),
    ]
    return _svg(title, _LINES_HEIGHT, parts)


def flame(title: str, stacks: Mapping[Stack, int]) -> str:
    """Boxes as wide as the share of the samples that they were in, each upon its caller, all upon one floor.

    What is too narrow to be seen is left out.
    """
    total = sum(stacks.values())
    scale = (WIDTH - 20) / total
    boxes: list[tuple[int, float, float, str]] = []

    def pile(among: Mapping[Stack, int], level: int, x: float) -> None:
        above: dict[str, dict[Stack, int]] = {}
        for stack, count in among.items():
            if len(stack) > level:
                above.setdefault(stack[level], {})[stack] = count
        for name, those in sorted(above.items()):
            width = sum(those.values()) * scale
            if width >= _NARROWEST:
                boxes.append((level, x, width, name))
                pile(those, level + 1, x)
            x += width

    pile(stacks, 0, 10.0)
    floor = _TOP + (1 + max(level for level, *_ in boxes)) * _STOREY
    parts = [_box(x, floor - (level + 1) * _STOREY, width, name) for level, x, width, name in boxes]
    return _svg(title, floor + 10, parts)


def _box(x: float, y: float, width: float, name: str) -> str:
    """With as much of its name as fits into it, and all of it for who points at it."""
    room = int((width - 6) / _WIDEST)
    shown = name if len(name) <= room else f"{name[: room - 1]}…" if room > 3 else ""
    at = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_STOREY - 1}"'
    box = f'<rect {at} fill="{_TINTS[crc32(name.encode()) % len(_TINTS)]}"/>'
    told = f"<title>{escape(name)}: {width / (WIDTH - 20):.1%}</title>"
    return f"<g>{told}{box}{_text(x + 3, y + _STOREY - 6, shown) if shown else ''}</g>"


class _Axis:
    """From values to places on the paper, with ticks at round values."""

    def __init__(self, values: Sequence[float], low: float, high: float, logarithmic: bool) -> None:
        self.low, self.high = low, high
        self._logarithmic = logarithmic
        if logarithmic:
            self.ticks = [_round(min(values), up=False)]
            while self.ticks[-1] < max(values) or len(self.ticks) == 1:
                self.ticks.append(_round(self.ticks[-1] * 1.5))
        else:
            most = max(values) * (1 - _OVER)
            step = _round(most / 5)
            self.ticks = [step * i for i in range(ceil(most / step) + 1)]

    def at(self, value: float) -> float:
        first, last = self.ticks[0], self.ticks[-1]
        if self._logarithmic:
            share = log10(value / first) / log10(last / first)
        else:
            share = (value - first) / (last - first)
        return self.low + share * (self.high - self.low)


def _round(value: float, *, up: bool = True) -> float:
    """The next 1, 2 or 5 times a power of ten, or the last that is not more."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** (log10(value) // 1)
    digits = (1, 2, 5, 10)
    if up:
        return next(power * digit for digit in digits if power * digit >= value)
    return next(power * digit for digit in reversed(digits) if power * digit <= value)


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
