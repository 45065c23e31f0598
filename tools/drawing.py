"""Draw an SVG from a plain description: boxes and arrows, or a sequence of messages.

A description is a line for each thing; `|` breaks a label into lines, `#` begins a comment.

    boxes WIDTH HEIGHT                  the canvas, in units; everything below is placed in these units
    box NAME X Y WIDTH HEIGHT LABEL     a box; `store` and `area` look different
    arrow FROM TO LABEL                 from border to border; a bend where neither rows nor columns meet
    text X Y LABEL                      text that begins there

    sequence
    actor NAME LABEL                    a column
    FROM > TO LABEL                     an arrow to another column
    note NAME LABEL                     a box on a column
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from html import escape

UNIT_X, UNIT_Y = 96, 52
LINE, CHARACTER = 16, 6.7
COLUMN, ROW = 250, 30
STYLE = """
  .page { fill: #ffffff } .box { fill: #eef3f8; stroke: #5b6b7b } .store { fill: #fdf3dc; stroke: #9a6f1b }
  .area { fill: none; stroke: #8c98a4; stroke-dasharray: 5 4 } .line { stroke: #3d4a57; fill: none }
  .head { fill: #3d4a57 } .life { stroke: #b4bec8; stroke-dasharray: 3 4 }
  text { fill: #1b232b; font: 12.5px system-ui, "Segoe UI", "DejaVu Sans", sans-serif }
  .quiet { fill: #56636f }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .box { fill: #1c2733; stroke: #7d90a3 } .store { fill: #33290f; stroke: #c29a4a }
    .area { stroke: #6b7885 } .line { stroke: #b7c3cf } .head { fill: #b7c3cf } text { fill: #e4eaf0 }
    .quiet { fill: #9fadba } .life { stroke: #48535e }
  }
"""


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of it."""
        return self.x + self.width / 2, self.y + self.height / 2


def draw(description: str) -> str:
    """The picture as the text of an SVG file. Raises ValueError for a line that is no description."""
    lines = [line for line in description.splitlines() if line.strip() and not line.startswith("#")]
    kind, *size = lines[0].split()
    if kind == "boxes":
        width, height = float(size[0]) * UNIT_X, float(size[1]) * UNIT_Y
        body = _boxes(lines[1:])
    elif kind == "sequence":
        body, width, height = _sequence(lines[1:])
    else:
        raise ValueError(f"a picture is `boxes` or `sequence`, not {kind!r}")
    return "\n".join([_HEAD.format(width=f"{width:g}", height=f"{height:g}", style=STYLE), *body, "</svg>\n"])


_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<style>{style}</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path class="head" d="M0 0 8 4 0 8z"/></marker></defs>
<rect class="page" width="{width}" height="{height}"/>"""


def _boxes(lines: list[str]) -> list[str]:
    boxes: dict[str, Box] = {}
    body = []
    for line in lines:
        kind, *words = shlex.split(line)
        if kind in ("box", "store", "area"):
            name, *numbers = words[:5]
            x, y, width, height = map(float, numbers)
            boxes[name] = box = Box(x * UNIT_X, y * UNIT_Y, width * UNIT_X, height * UNIT_Y)
            body += _box(kind, box, " ".join(words[5:]), line)
        elif kind == "text":
            x, y = float(words[0]) * UNIT_X, float(words[1]) * UNIT_Y
            body += _text(x, y, " ".join(words[2:]), "start", "quiet")
        elif kind == "arrow":
            body += _arrow(boxes[words[0]], boxes[words[1]], " ".join(words[2:]))
        else:
            raise ValueError(f"a line begins with box, store, area, text or arrow: {line}")
    return body


def _box(kind: str, box: Box, label: str, line: str) -> list[str]:
    if _width(label) > box.width:
        raise ValueError(f"the label is wider than the box: {line}")
    x, y = (box.centre[0], box.y + LINE) if kind == "area" else box.centre
    size = f'width="{box.width:g}" height="{box.height:g}"'
    rectangle = f'<rect class="{kind}" x="{box.x:g}" y="{box.y:g}" {size} rx="5"/>'
    return [rectangle, *_text(x, y, label, "middle")]


def _arrow(start: Box, end: Box, label: str) -> list[str]:
    """Draw along a row or column that both boxes share, else from a side to a top or foot."""
    left, right = max(start.x, end.x), min(start.x + start.width, end.x + end.width)
    top, foot = max(start.y, end.y), min(start.y + start.height, end.y + end.height)
    (x1, y1), (x2, y2) = start.centre, end.centre
    if top < foot:
        y1 = y2 = (top + foot) / 2
        x1, x2 = (start.x + start.width, end.x) if x1 < x2 else (start.x, end.x + end.width)
        path, at, anchor = f"M{x1:g} {y1:g}H{x2:g}", ((x1 + x2) / 2, y1 - 10), "middle"
    elif left < right:
        x1 = x2 = (left + right) / 2
        y1, y2 = (start.y + start.height, end.y) if y1 < y2 else (start.y, end.y + end.height)
        path, at, anchor = f"M{x1:g} {y1:g}V{y2:g}", (x1 + 7, (y1 + y2) / 2), "start"
    else:
        x1 = start.x + start.width if x1 < x2 else start.x
        y2 = end.y if y1 < y2 else end.y + end.height
        path, at, anchor = f"M{x1:g} {y1:g}H{x2:g}V{y2:g}", ((x1 + x2) / 2, y1 - 10), "middle"
    return [f'<path class="line" marker-end="url(#head)" d="{path}"/>', *_text(*at, label, anchor, "quiet")]


def _sequence(lines: list[str]) -> tuple[list[str], float, float]:
    columns: dict[str, float] = {}
    body: list[str] = []
    y = 60.0
    for line in lines:
        first, second, rest = line.split(maxsplit=2)
        if first == "actor":
            columns[second] = COLUMN * (len(columns) + 0.5)
            body += _box("box", Box(columns[second] - 96, 10, 192, 34), rest, line)
        elif first == "note":
            height = LINE * (rest.count("|") + 1) + 10
            box = Box(columns[second] - COLUMN / 2 + 4, y - 10, COLUMN - 8, height)
            body += _box("store", box, rest, line)
            y += height + 14
        elif second == ">":
            target, _, label = rest.partition(" ")
            start, end = columns[first], columns[target]
            y += LINE * label.count("|")
            path = f"M{start:g} {y + 8:g}H{end:g}"
            body.append(f'<path class="line" marker-end="url(#head)" d="{path}"/>')
            body += _text((start + end) / 2, y - 2 - LINE / 2 * label.count("|"), label, "middle")
            y += ROW + 6
        else:
            raise ValueError(f"a line is an actor, a note or `FROM > TO LABEL`: {line}")
    total = y + 4
    lives = [f'<path class="life" d="M{x:g} 44V{total - 6:g}"/>' for x in columns.values()]
    return lives + body, COLUMN * len(columns), total


def _width(label: str) -> float:
    return max(len(part) for part in label.split("|")) * CHARACTER


def _text(x: float, y: float, label: str, anchor: str, style: str = "") -> list[str]:
    """The lines of a label, centred about a height."""
    parts = label.split("|") if label else []
    first = y - LINE * (len(parts) - 1) / 2 + 4.5
    shape = f'class="{style}" x="{x:g}" text-anchor="{anchor}"'
    return [f'<text {shape} y="{first + LINE * n:g}">{escape(part)}</text>' for n, part in enumerate(parts)]
