"""Catching up: from the first record to the last committed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from benchmarks.arena import Arena, Lane, Sample
from benchmarks.contenders import Contender, available
from benchmarks.figures import in_turn, ratio, summary
from benchmarks.process import BenchmarkFailed, running, usage

MESSAGES = 200_000
Line = dict[str, Any]
_DRAINED = ("published", "dead_lettered", "duplicates", "stale")


def run(
    arena: Arena, names: Sequence[str], rounds: int, messages: int, say: Callable[[str], None]
) -> Iterator[Line]:
    """A line for each contender of these names, all without any. Raises KeyError for others."""
    there = {contender.name: contender for contender in available()}
    yield from compare(arena, [there[name] for name in names or there], rounds, messages, say)


def compare(
    arena: Arena, contenders: Sequence[Contender], rounds: int, messages: int, say: Callable[[str], None]
) -> Iterator[Line]:
    """Let contenders catch up on so many messages, in turn, and give their medians and ratios."""
    by_name = {contender.name: contender for contender in contenders}
    results: dict[str, list[dict[str, float]]] = {name: [] for name in by_name}
    for number in range(rounds):
        for name in in_turn(list(by_name), number):
            with arena.lane() as lane:
                result = catch_up(lane, by_name[name], messages)
            results[name].append(result)
            say(f"catchup, round {number + 1} of {rounds}: {name} {result['messages_per_second']:,.0f}/s")
    for name, found in results.items():
        yield {
            "bench": "catchup",
            "contender": name,
            "messages": messages,
            "rounds": rounds,
            **summary(found),
            **_ratios(results, name),
        }


def catch_up(
    lane: Lane,
    contender: Contender,
    messages: int,
    *server: object,
    look: Callable[[Sample], None] = lambda _: None,
) -> dict[str, float]:
    """One contender, once. Raises BenchmarkFailed unless every message became a record, once."""
    feed = lane.feed("--messages", messages, *server) if contender.reads_feed else nullcontext()
    with feed as opened:
        url = opened[1] if opened else ""
        environment = {**lane.environment(FEED__BASE_URL=url), **contender.environment}
        with running(contender.name, contender.command(messages), environment, lane.directory) as program:
            source = opened[0] if opened else program
            program.wait_until(lambda: source.said("first") is not None, "has not begun")
            began = source.said("first")
            before = usage(program.pid)
            end = lane.watch(program, messages, look)
            told = source.told("cpu_us") if opened else 0.0
            if contender.name.startswith("bridge"):
                _check(lane, messages)
    seconds = end.at - began
    return {
        "messages_per_second": messages / seconds,
        "cpu_us": (end.cpu - before.cpu) * 1e6 / messages,
        "peak_mb": end.peak,
        "seconds": seconds,
        "server_cpu_us": told,
    }


def _check(lane: Lane, messages: int) -> None:
    """The bridge's own account must say the same."""
    counters = lane.counters()
    if counters["published"] != messages:
        raise BenchmarkFailed(f"the bridge has not published each of {messages} messages once: {counters}")


def _ratios(results: dict[str, list[dict[str, float]]], name: str) -> Line:
    """Messages a second in those of the floor and of the ceiling, round by round."""

    def rates(of: str) -> list[float]:
        return [found["messages_per_second"] for found in results[of]]

    return {
        f"ratio_{other}": ratio(rates(name), rates(other)).as_json()
        for other in ("floor", "ceiling")
        if other in results
    }
