"""Writes the figures of `make bench` as tables and plots into the pages that they belong to.

Each benchmark has its place there, between two comments; the rest of the page is written by hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import latency, plot
from benchmarks.process import ROOT, BenchmarkFailed
from bridge.formatting import plural

PAGE = ROOT / "docs" / "performance.md"
SCALE, SNAPSHOTS, READING = (ROOT / "docs" / f"{page}.md" for page in ("scale", "snapshots", "reading"))
FIGURES = ROOT / "benchmarks" / "figures.md"
"""What only those who work on it read."""
_ELSEWHERE = {"scale": SCALE, "snapshots": SNAPSHOTS, "learn": SNAPSHOTS, "replay": READING}
_ELSEWHERE |= dict.fromkeys(("latency", "growth", "micro", "limit", "join"), FIGURES)
PLOTS = ROOT / "docs" / "performance"
Line = Mapping[str, Any]


def write(bench: str, lines: Sequence[Line], machine: str) -> None:
    """Replace the place of a benchmark, and its plots. `machine` names the machine and the date."""
    page = _ELSEWHERE.get(bench, PAGE)
    table, drawn = _drawn(bench, lines)
    PLOTS.mkdir(exist_ok=True)
    for name, svg in drawn.items():
        (PLOTS / f"{name}.svg").write_text(svg, "utf-8")
    plots = os.path.relpath(PLOTS, page.parent)
    pictures = "".join(f"\n![{name}]({plots}/{name}.svg)\n" for name in drawn)
    content = f"{table}{pictures}\n{_extent(lines[0])} {machine}\n"
    put(page, bench, content)


def content(page: str, place: str) -> str:
    """Return what is between the comments of a place, or raise BenchmarkFailed."""
    begin, end = _bounds(page, place)
    return page[begin:end]


def put(page: Path, place: str, content: str) -> None:
    """Write new content between the comments of a place, or raise BenchmarkFailed."""
    page.write_text(replaced(page.read_text("utf-8"), place, content), "utf-8")


def replaced(page: str, place: str, content: str) -> str:
    """Return the page with new content between the comments of a place, or raise BenchmarkFailed."""
    begin, end = _bounds(page, place)
    return f"{page[:begin]}{content}{page[end:]}"


def _bounds(page: str, place: str) -> tuple[int, int]:
    """Return where the content of a place begins and ends."""
    begin, end = f"<!-- {place} -->\n", f"<!-- /{place} -->"
    if begin not in page or end not in page:
        raise BenchmarkFailed(f"the page has no place for {place}: put {begin.strip()} and {end} into it")
    return page.index(begin) + len(begin), page.index(end)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """Return a table in Markdown; its first columns hold texts, the others numbers."""
    bars = ["---"] * texts + ["---:"] * (len(head) - texts)
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, bars, *rows))


def spread(found: Mapping[str, float], digits: int = 0) -> str:
    """Format a median with minimum and maximum: `5,043 (4,911–5,102)`."""
    return "{:,.{d}f} ({:,.{d}f}–{:,.{d}f})".format(found["median"], found["min"], found["max"], d=digits)


def _extent(line: Line) -> str:
    """Describe how much was measured: `5 rounds of 100,000 messages.`"""
    messages = f" of {line['messages']:,} messages" if "messages" in line else ""
    return f"{plural(line['rounds'], 'round')}{messages}."


def _median(line: Line, name: str, digits: int) -> str:
    return f"{line[name]['median']:,.{digits}f}" if name in line else "–"


Cell = Callable[[Line], str]
Columns = Mapping[str, Cell]
"""Head → what a line has in that column."""


def text(form: str) -> Cell:
    """Return a cell of a line's own fields, as in `{bets:,} bets`."""
    return lambda line: form.format_map(line)


def figures(name: str, digits: int = 0) -> Cell:
    """Return a cell with a median and its spread."""
    return lambda line: spread(line[name], digits)


def median(name: str, digits: int = 0) -> Cell:
    """Return a cell with a median alone."""
    return lambda line: _median(line, name, digits)


def _rows(lines: Sequence[Line], columns: Columns, texts: int = 1) -> str:
    return table(list(columns), [[cell(line) for cell in columns.values()] for line in lines], texts)


TABLES: dict[str, Columns] = {
    "catchup": {
        "contender": text("{contender}"),
        "messages/s": figures("messages_per_second"),
        "CPU µs a message": median("cpu_us", 1),
        "peak MB": median("peak_mb"),
        "× floor": median("ratio_floor", 2),
        "× ceiling": median("ratio_ceiling", 3),
        "× bridge": median("ratio_bridge", 3),
    },
    "start": {
        "deduplicator": text("{deduplicator:,} bets"),
        "seconds to the first commit": figures("seconds", 2),
        "CPU seconds": median("cpu_seconds", 2),
        "peak MB": median("peak_mb"),
    },
    "snapshots": {
        "records": text("{records:,}"),
        "records/s": figures("records_per_second"),
        "CPU µs a record": median("cpu_us", 1),
        "peak MB": median("peak_mb"),
        "provider's CPU µs": median("provider_cpu_us", 1),
    },
    "learn": {
        "job": text("{job}"),
        "bets/s": figures("bets_per_second"),
        "first run, s": median("first_seconds", 1),
        "next run, s": median("again_seconds", 1),
    },
    "limit": {
        "part": text("{part}"),
        "CPU µs a message": figures("cpu_us", 1),
        "÷ bridge": median("ratio_bridge", 2),
    },
    "quota": {
        "quota, kB/s": text("{kbytes_per_second}"),
        "contender": text("{contender}"),
        "share of it used": figures("share", 2),
    },
    "replay": {
        "what": text("{what}"),
        "seconds, with the start": figures("seconds", 1),
        "records/s": median("records_per_second"),
        "peak MB": median("peak_mb"),
        "× other build": median("than_other", 1),
    },
    "join": {
        "topology, partitions": text("{mode}, {partitions}"),
        "bets/s": figures("bets_per_second"),
        "CPU µs a bet": median("cpu_us"),
        "broker's CPU µs a bet": median("broker_cpu_us"),
        "peak MB": median("peak_mb"),
        "state, MB": median("state_mb", 1),
        "seconds to the first line": median("start_seconds", 1),
    },
    "back": {
        "provider": text("{case}"),
        "build": text("{build}"),
        "seconds to the first bet": figures("seconds", 1),
    },
}
_TWO_TEXTS = ("quota", "back")
"""Benchmarks whose first two columns hold texts."""


def _drawn(bench: str, lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    """Return the table of a benchmark, and its plots by name."""
    if bench in _PAGES:
        return _PAGES[bench](lines)
    return _rows(lines, TABLES[bench], 2 if bench in _TWO_TEXTS else 1), {}


def _catchup(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    bars = [
        plot.Bar(line["contender"], *(line["messages_per_second"][n] for n in ("median", "min", "max")))
        for line in lines
        if line["contender"] != "ceiling"
    ]
    return _rows(lines, TABLES["catchup"]), {"catchup": plot.bars("Catching up, messages a second", bars)}


def _latency(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    levels = [name.replace("read_", "") for name in latency.ISOLATIONS]
    head = [f"{level} {p.replace('_', '.')}" for level in levels for p in latency.SHARES]
    rows = [
        [
            f"{line['rate']:,}/s {line['contender']}",
            *(f"{line[name]['median']:,.1f} ({line[name]['interval_ms']})" for name in latency.FIGURES),
        ]
        for line in lines
    ]
    ratios = [
        [
            f"{line['rate']:,}/s, {peer}",
            *(_median(line, latency.ratio_name(peer, name), 2) for name in latency.FIGURES),
        ]
        for line in lines
        for peer in latency.PEERS
        if latency.ratio_name(peer, latency.FIGURES[0]) in line
    ]
    series: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        for p in ("p50", "p99"):
            point = line["rate"], line[f"read_committed_{p}_ms"]["median"]
            series.setdefault(f"{line['contender']} {p}", []).append(point)
    drawn = plot.lines(
        "Latency, read_committed, at the best interval", ("messages a second", "ms"), series, logarithmic=True
    )
    tables = table(["ms (interval)", *head], rows), table(["bridge ÷", *head], ratios)
    return "\n".join(tables), {"latency": drawn}


def _growth(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    sizes = [{**line, "us": line.get("us") or line["cpu_us"]} for line in lines if line["by"] != "time"]
    of_deduplicator = {"bets known": " (deduplicator alone)"}
    columns: Columns = {
        "": lambda line: f"{line['size']}{of_deduplicator.get(line['by'], '')}",
        "CPU µs a message": figures("us", 1),
        "MB": lambda line: _median(line, "rss_mb" if line["by"] in of_deduplicator else "peak_mb", 0),
        "CPU × the first": median("ratio_smallest", 2),
    }
    drawn = {}
    for line in lines:
        if line["by"] == "time":
            points = [(s["committed"] / 1000, s["rss_mb"]) for s in line["samples"]]
            title = f"Memory while catching up on {line['messages']:,} messages"
            drawn["memory"] = plot.lines(title, ("thousand messages committed", "MB"), {"RSS": points})
    return _rows(sizes, columns), drawn


def _scale(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    """One row for a load: on one broker, and what differs on three with as many copies."""
    replicated = {(line["load"], line["partitions"]): line for line in lines if line["brokers"] > 1}

    def on_three(cell: Cell) -> Cell:
        return lambda line: cell(replicated[line["load"], line["partitions"]])

    columns: Columns = {
        "bets; partitions": text("{load}; {partitions}"),
        "transactions/s": median("transactions_per_second"),
        "bridge, CPU µs a bet": median("bridge_cpu_us"),
        "broker, CPU µs a bet": figures("broker_cpu_us"),
        "three brokers, CPU µs a bet": on_three(figures("broker_cpu_us")),
        "their cores": on_three(median("broker_cores", 2)),
        "bytes on disk a bet": median("bytes_on_disk"),
        "bytes to the broker a bet": median("bytes_received"),
    }
    return _rows([line for line in lines if line["brokers"] == 1], columns), {}


def _micro(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = []
    for line in lines:
        others = [name.removeprefix("ratio_") for name in line if name.startswith("ratio_")]
        held = [f"{o} {_median(line, f'{o}_us', 1)}, × {_median(line, f'ratio_{o}', 2)}" for o in others]
        rows.append([line["step"], spread(line["bridge_us"], 1), "; ".join(held)])
    return table(["step", "bridge, CPU µs", "held against"], rows), {}


_PAGES: dict[str, Callable[[Sequence[Line]], tuple[str, dict[str, str]]]] = {
    "catchup": _catchup,
    "latency": _latency,
    "growth": _growth,
    "micro": _micro,
    "scale": _scale,
}
"""Benchmarks with more than a table of their lines."""
PAGES = {*TABLES, *_PAGES}
"""Benchmarks whose figures have a place in docs/."""
