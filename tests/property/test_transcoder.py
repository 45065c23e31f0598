"""The transcoder changes no result: each message has the same conversion or error without it.

Each test also counts the accepted messages: a transcoder that accepts none would pass the rest.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.messages.model import omittable_fields
from tests.malformed import MALFORMED
from tests.messages import MESSAGE, RANDOM, SIMULATED, Node, spelt
from tests.mutations import COSTLY, MUTATIONS, ORIGINALS, Comparison, mutated

STRICT, LENIENT = Comparison(), Comparison(*omittable_fields())
CHEAP = sorted({*MUTATIONS} - {*COSTLY})


def test_every_message_of_the_simulator_is_transcoded() -> None:
    assert [data for data in SIMULATED if not STRICT.outcome(data).accepted] == []


@settings(max_examples=100, deadline=None)
@given(MESSAGE, RANDOM)
def test_a_valid_message_is_transcoded(message: Node, random: Random) -> None:
    assert STRICT.outcome(spelt(message, random).encode()).accepted


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_message_is_not_transcoded(kind: str) -> None:
    for number, message in enumerate(SIMULATED[:20]):
        data, _ = MALFORMED[kind](json.loads(message), number)
        assert STRICT.outcome(data).traits == ["an error"]


@pytest.mark.long
def test_a_mutated_message_has_the_same_result() -> None:
    taken: Counter[tuple[str, bool]] = Counter()

    @settings(max_examples=1200, deadline=None)
    @given(
        st.sampled_from([STRICT, LENIENT]),
        st.sampled_from(ORIGINALS),
        st.lists(st.sampled_from(CHEAP) | st.sampled_from(MUTATIONS), min_size=1, max_size=3),
        st.integers(0, 2**32),
    )
    def compare(ways: Comparison, message: bytes, mutations: list[str], seed: int) -> None:
        outcome = ways.outcome(mutated(message, mutations, Random(seed)))
        taken.update((name, outcome.accepted) for name in {*mutations, *outcome.traits})

    compare()
    assert {name for name, accepted in taken if accepted} == {*MUTATIONS, "a bet", "a ping", "extras"}
    assert {name for name, accepted in taken if not accepted} >= {*MUTATIONS, "an error"}
