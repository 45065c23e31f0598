"""Catching up: from the first record to the last committed one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice

from benchmarks.arena import Arena, Lane, Sample
from benchmarks.contenders import BRIDGE, CEILING, FLOOR, Contender, available
from benchmarks.messages import BLOCK, Block, number_in
from benchmarks.process import BenchmarkFailed, running, usage
from benchmarks.rounds import Line, Options, Result, divided, line, measured
from bridge.avro.codec import Codec, schema_id_of
from bridge.avro.schemas import load
from bridge.messages.parser import MessageParser

MESSAGES = 100_000


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each contender of these names, or for all. Raises KeyError for an unknown name."""
    there = {contender.name: contender for contender in available()}
    names = options.contenders or there
    yield from compare(arena, [there[name] for name in names], options.rounds, options.messages or MESSAGES)


def compare(arena: Arena, contenders: Sequence[Contender], rounds: int, messages: int) -> Iterator[Line]:
    """Let contenders catch up in turn, each on its share of the messages; yields their medians and ratios."""
    shares = {contender.name: int(messages * contender.share) for contender in contenders}
    by_name = {contender.name: contender for contender in contenders}
    bodies = Block().bodies()

    def once(name: str) -> Result:
        with arena.lane() as lane:
            result = catch_up(lane, by_name[name], shares[name])
            if by_name[name].reads_feed:
                check_records(islice(lane.arena.read(lane.bets), BLOCK), bodies)
        return result

    found = measured("catchup", list(by_name), rounds, once)
    for name, results in found.items():
        ratios = {
            f"ratio_{other}": divided(results, found[other], "messages_per_second")
            for other in (BRIDGE.name, FLOOR.name, CEILING.name)
            if other in found and other != name
        }
        yield line("catchup", results, contender=name, messages=shares[name]) | ratios


def catch_up(
    lane: Lane,
    contender: Contender,
    messages: int,
    *server: object,
    look: Callable[[Sample], None] = lambda _: None,
) -> Result:
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
