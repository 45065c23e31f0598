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
    table, drawn = _PAGES[bench](lines)
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


def _catchup(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = [
        [
            line["contender"],
            spread(line["messages_per_second"]),
            _median(line, "cpu_us", 1),
            _median(line, "peak_mb", 0),
            _median(line, "ratio_floor", 2),
            _median(line, "ratio_ceiling", 3),
            _median(line, "ratio_bridge", 3),
        ]
        for line in lines
    ]
    head = ["contender", "messages/s", "CPU µs a message", "peak MB", "× floor", "× ceiling", "× bridge"]
    bars = [
        plot.Bar(line["contender"], *(line["messages_per_second"][n] for n in ("median", "min", "max")))
        for line in lines
        if line["contender"] != "ceiling"
    ]
    return table(head, rows), {"catchup": plot.bars("Catching up, messages a second", bars)}


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


def _start(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = [
        [
            f"{line['deduplicator']:,} bets",
            spread(line["seconds"], 2),
            _median(line, "cpu_seconds", 2),
            _median(line, "peak_mb", 0),
        ]
        for line in lines
    ]
    return table(["deduplicator", "seconds to the first commit", "CPU seconds", "peak MB"], rows), {}


def _growth(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    sizes = [line for line in lines if line["by"] != "time"]
    rows = [
        [
            line["size"] + (" (deduplicator alone)" if line["by"] == "bets known" else ""),
            spread(line["us" if line["by"] == "bets known" else "cpu_us"], 1),
            _median(line, "rss_mb" if line["by"] == "bets known" else "peak_mb", 0),
            _median(line, "ratio_smallest", 2),
        ]
        for line in sizes
    ]
    head = ["", "CPU µs a message", "MB", "CPU × the first"]
    drawn = {}
    for line in lines:
        if line["by"] == "time":
            points = [(s["committed"] / 1000, s["rss_mb"]) for s in line["samples"]]
            title = f"Memory while catching up on {line['messages']:,} messages"
            drawn["memory"] = plot.lines(title, ("thousand messages committed", "MB"), {"RSS": points})
    return table(head, rows), drawn


def _snapshots(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = [
        [
            f"{line['records']:,}",
            spread(line["records_per_second"]),
            _median(line, "cpu_us", 1),
            _median(line, "peak_mb", 0),
            _median(line, "provider_cpu_us", 1),
        ]
        for line in lines
    ]
    return table(["records", "records/s", "CPU µs a record", "peak MB", "provider's CPU µs"], rows), {}


def _learn(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = [
        [
            line["job"],
            spread(line["bets_per_second"]),
            _median(line, "first_seconds", 1),
            _median(line, "again_seconds", 1),
        ]
        for line in lines
    ]
    return table(["job", "bets/s", "first run, s", "next run, s"], rows), {}


def _limit(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = [[line["part"], spread(line["cpu_us"], 1), _median(line, "ratio_bridge", 2)] for line in lines]
    return table(["part", "CPU µs a message", "÷ bridge"], rows), {}


def _quota(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = [[f"{line['kbytes_per_second']}", line["contender"], spread(line["share"], 2)] for line in lines]
    return table(["quota, kB/s", "contender", "share of it used"], rows, texts=2), {}


def _replay(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = [
        [
            line["what"],
            spread(line["seconds"], 1),
            _median(line, "records_per_second", 0),
            _median(line, "peak_mb", 0),
            f"{line['than_other']['median']:.1f}" if "than_other" in line else "–",
        ]
        for line in lines
    ]
    head = ["what", "seconds, with the start", "records/s", "peak MB", "× other build"]
    return table(head, rows), {}


def _scale(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    """One row for a load: on one broker, and what differs on three with as many copies."""
    replicated = {(line["load"], line["partitions"]): line for line in lines if line["brokers"] > 1}
    rows = [
        [
            f"{line['load']}; {line['partitions']}",
            _median(line, "transactions_per_second", 0),
            _median(line, "bridge_cpu_us", 0),
            spread(line["broker_cpu_us"]),
            spread(replicated[line["load"], line["partitions"]]["broker_cpu_us"]),
            _median(replicated[line["load"], line["partitions"]], "broker_cores", 2),
            _median(line, "bytes_on_disk", 0),
            _median(line, "bytes_received", 0),
        ]
        for line in lines
        if line["brokers"] == 1
    ]
    costs = ["bridge, CPU µs a bet", "broker, CPU µs a bet", "three brokers, CPU µs a bet", "their cores"]
    sizes = ["bytes on disk a bet", "bytes to the broker a bet"]
    return table(["bets; partitions", "transactions/s", *costs, *sizes], rows), {}


def _join(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = [
        [
            f"{line['mode']}, {line['partitions']}",
            spread(line["bets_per_second"]),
            _median(line, "cpu_us", 0),
            _median(line, "broker_cpu_us", 0),
            _median(line, "peak_mb", 0),
            _median(line, "state_mb", 1),
            _median(line, "start_seconds", 1),
        ]
        for line in lines
    ]
    head = ["topology, partitions", "bets/s", "CPU µs a bet", "broker's CPU µs a bet", "peak MB"]
    return table([*head, "state, MB", "seconds to the first line"], rows), {}


def _back(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    rows = [[line["case"], line["build"], spread(line["seconds"], 1)] for line in lines]
    return table(["provider", "build", "seconds to the first bet"], rows, texts=2), {}


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
    "start": _start,
    "growth": _growth,
    "snapshots": _snapshots,
    "learn": _learn,
    "micro": _micro,
    "limit": _limit,
    "quota": _quota,
    "replay": _replay,
    "scale": _scale,
    "join": _join,
    "back": _back,
}
