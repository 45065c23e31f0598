"""How the judge reads a message, and chooses a partition, against what the bridge makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.errors import ConversionError
from bridge.kafka import partitioner
from bridge.messages.parser import MessageParser
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.judge.messages import Kind, content, differences, read
from tests.judge.partition import partition_of
from tests.malformed import MALFORMED

STREAM = SimulatorSettings(odd=0.1).stream(1_790_000_000.0)
MESSAGES = [STREAM.message(slot).body for slot in range(150)]
BETS = [json.loads(body) for body in MESSAGES if read(body).kind is Kind.BET]


def by_the_bridge(body: bytes) -> tuple[Kind, Any]:
    """What the bridge makes of a message."""
    try:
        bet = MessageParser().parse(body).bet
    except ConversionError:
        return Kind.LETTER, {}
    return (Kind.NOTHING, {}) if bet is None else (Kind.BET, bet)


def test_both_read_what_the_simulator_sends_alike() -> None:
    kinds = set()
    for body in MESSAGES:
        found = read(body)
        kinds.add(found.kind)
        assert (found.kind, found.bet) == by_the_bridge(body)
        if found.bet:
            assert content(found.bet) == content(by_the_bridge(body)[1])
    assert kinds == set(Kind)


@pytest.mark.parametrize("kind", MALFORMED)
def test_both_refuse_the_same_malformed_messages(kind: str) -> None:
    body, _ = MALFORMED[kind](BETS[0], 0)
    assert read(body).kind is by_the_bridge(body)[0] is Kind.LETTER


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"pingId":"1","more":[1]}',
        b'{"more":1}',
        b'{"pingId":1}',
        b'{"pingId":"\\ud800"}',
        b'{"pingId":"1","x":"\\ud800"}',
        b"[]",
        b"\xef\xbb\xbf{}",
    ],
)
def test_both_agree_on_what_holds_no_bet(body: bytes) -> None:
    assert read(body).kind is by_the_bridge(body)[0]


def test_a_content_tells_every_difference() -> None:
    bet = read(json.dumps(BETS[0]).encode()).bet
    different: dict[str, list[Any]] = {
        "payout": [0.0, -0.0, 1.0],
        "isCancelled": [True, False, 1],
        "settlementVersion": [1, 1.0, True, None],
    }
    for name, values in different.items():
        contents = [content({**bet, name: value}) for value in values]
        assert len(set(contents)) == len(values)


def test_differences_are_told_by_their_paths() -> None:
    one = {"a": 1, "list": [{"x": 1.0}], "none": None}
    other = {"a": 1, "list": [{"x": 1}], "none": "y"}
    assert differences(one, other) == ["data.list[0].x 1.0 became 1", "data.none None became 'y'"]


def test_both_choose_the_same_partitions() -> None:
    keys = [bytes(range(7, 7 + length)) for length in range(80)] + [b"\xff" * n for n in range(9)]
    assert [partition_of(it, 2**31) for it in keys] == [partitioner.partition_of(it, 2**31) for it in keys]
