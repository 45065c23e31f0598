"""Catching up: from the first record to the last committed one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any

from benchmarks.arena import Arena, Lane, Sample
from benchmarks.contenders import BRIDGE, CEILING, FLOOR, Contender, available
from benchmarks.figures import in_turn, ratio, summary
from benchmarks.messages import BLOCK, Block, number_in
from benchmarks.process import BenchmarkFailed, running, usage
from bridge.avro.codec import Codec, schema_id_of
from bridge.avro.schemas import load
from bridge.messages.parser import MessageParser

MESSAGES = 100_000
Line = dict[str, Any]


def run(
    arena: Arena, names: Sequence[str], rounds: int, messages: int, say: Callable[[str], None]
) -> Iterator[Line]:
    """Yield a line for each contender of these names, or for all. Raises KeyError for an unknown name."""
    there = {contender.name: contender for contender in available()}
    yield from compare(arena, [there[name] for name in names or there], rounds, messages, say)


def compare(
    arena: Arena, contenders: Sequence[Contender], rounds: int, messages: int, say: Callable[[str], None]
) -> Iterator[Line]:
    """Let contenders catch up in turn, each on its share of the messages; yields their medians and ratios."""
    by_name = {contender.name: contender for contender in contenders}
    bodies = Block().bodies()
    results: dict[str, list[dict[str, float]]] = {name: [] for name in by_name}
    for number in range(rounds):
        for name in in_turn(list(by_name), number):
            with arena.lane() as lane:
                result = catch_up(lane, by_name[name], int(messages * by_name[name].share))
                if by_name[name].reads_feed:
                    check_records(islice(lane.arena.read(lane.bets), BLOCK), bodies)
            results[name].append(result)
            say(f"catchup, round {number + 1} of {rounds}: {name} {result['messages_per_second']:,.0f}/s")
    for name, found in results.items():
        yield {
            "bench": "catchup",
            "contender": name,
            "messages": int(messages * by_name[name].share),
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
    """Run one contender once. Raises BenchmarkFailed unless every message became one record."""
    server = ("--messages", messages, *contender.server, *server)
    feed = lane.feed(*server) if contender.reads_feed else nullcontext()
    with feed as opened:
        url = opened[1] if opened else ""
        environment = {**lane.environment(FEED__BASE_URL=url), **contender.environment}
        command = contender.command + ([] if contender.reads_feed else ["--messages", str(messages)])
        with running(contender.name, command, environment, lane.directory) as program:
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
    """Raise BenchmarkFailed unless the bridge has counted the same."""
    counters = lane.counters()
    if counters["published"] != messages:
        raise BenchmarkFailed(f"the bridge has not published each of {messages} messages once: {counters}")


def check_records(records: Iterable[tuple[bytes, bytes]], bodies: Sequence[bytes]) -> None:
    """Compare records, key and value, with the bets in the messages of a block.

    Raises BenchmarkFailed for a record that differs in another field than the bet's settlementTime, which is
    not the same in each round.
    """
    parser, schema = MessageParser(), load("settled-bet")
    for key, value in records:
        codec = Codec(schema, schema_id_of(value))
        found, bet = codec.decode(value), parser.parse(bodies[number_in(key) % BLOCK]).bet
        changed = {"betId": key.decode(), "settlementTime": found["settlementTime"]}
        expected = codec.decode(codec.encode({**(bet or {}), **changed}))
        if found != expected:
            raise BenchmarkFailed(f"published {found}\ninstead of {expected}")


def _ratios(results: dict[str, list[dict[str, float]]], name: str) -> Line:
    """Divide messages a second by those of the bridge, the floor and the ceiling, round by round."""

    def rates(of: str) -> list[float]:
        return [found["messages_per_second"] for found in results[of]]

    return {
        f"ratio_{other}": ratio(rates(name), rates(other)).as_json()
        for other in (BRIDGE.name, FLOOR.name, CEILING.name)
        if other in results and other != name
    }
