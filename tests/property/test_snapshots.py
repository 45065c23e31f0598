"""Whatever the provider answers for whatever bets refer to is published complete, correct and once."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config.api import KINDS
from bridge.snapshots.model import Counts, Currency, CurrencyType, Omission, Snapshot, Translation
from bridge.snapshots.translations import Translations
from bridge.snapshots.usage import Usage
from bridge.snapshots.wanted import Task
from bridge_sandbox.provider.rest.routes import ENDPOINTS
from tests.unit.snapshots.test_translations_refused import matches
from tests.unit.snapshots.world import LANGUAGES, WORLD, Provider, Topic, api, bet, item, mention, translate

few = settings(max_examples=40, deadline=None)

languages = st.frozensets(st.sampled_from(LANGUAGES), max_size=2)
missing = st.tuples(languages, languages).filter(lambda both: not both[0] & both[1])
"""Languages that one form lacks and those that the other does; what both lack has no source."""
policies = st.fixed_dictionaries(
    {
        "missing": missing,
        "event_members": st.sampled_from(["names", "ids"]),
        "language_keys": st.sampled_from([{}, {"sv": "sv-SE"}]),
    }
)
places = st.frozensets(st.sampled_from(range(len(WORLD.events))), max_size=6)
orders = st.tuples(st.integers(1, 8), st.integers(0, 2**32).map(Random))


def provider_of(policy: dict[str, Any]) -> Provider:
    lists, whole = policy["missing"]
    rest = {name: value for name, value in policy.items() if name != "missing"}
    return Provider(only_in_lists=lists, only_in_all=whole, **rest)


def bets_on(places: frozenset[int]) -> Usage:
    """On all markets of the events at these places, and always one on no event and on what nobody knows."""
    references = mention(*(WORLD.events[place] for place in sorted(places)))
    references.add(bet([item(None, sportId=2, selectionId=1, market={"id": 1, "type": 18})]))
    return references


def run(
    provider: Provider, topic: Topic, references: Usage, order: tuple[int, Random], full: bool
) -> tuple[set[bytes], set[bytes]]:
    """Keys that one run writes and removes."""
    concurrency, provider.shuffle = order
    chosen = api(concurrency=concurrency, language_keys={"sv-SE": "sv"})
    outcome = asyncio.run(translate(provider, topic, references, full=full, settings=chosen))
    return set(outcome.written), outcome.removed


@few
@given(policies, places, places, orders, orders, st.booleans())
def test_a_run_over_an_unchanged_provider_writes_nothing(
    policy: dict[str, Any],
    first: frozenset[int],
    later: frozenset[int],
    order: tuple[int, Random],
    other: tuple[int, Random],
    full: bool,
) -> None:
    provider, topic = provider_of(policy), Topic()
    run(provider, topic, bets_on(first | later), order, False)
    assert run(provider, topic, bets_on(first | later), other, full) == (set(), set())
    written, removed = run(provider, topic, bets_on(later), other, full)
    assert written == set()
    assert full or not removed
    assert run(provider, topic, bets_on(later), order, full) == (set(), set())


@few
@given(policies, places, orders, st.booleans())
def test_what_is_published_is_true(
    policy: dict[str, Any], mentioned: frozenset[int], order: tuple[int, Random], full: bool
) -> None:
    provider, topic = provider_of(policy), Topic()
    references = bets_on(mentioned)
    run(provider, topic, references, order, full)
    truth = provider.truth()
    published = topic.texts()
    assert all(texts.items() <= truth[key].items() for key, texts in published.items())
    named = {key: texts for key, texts in truth.items() if texts}
    for kind in KINDS:
        for key in references.keys(kind):
            assert published.get(key, {}) == named.get(key, {})


@few
@given(policies, places, places, st.booleans(), st.sampled_from([(), ("league",), ("event", "competitor")]))
def test_as_many_questions_are_asked_as_were_foreseen(
    policy: dict[str, Any],
    known: frozenset[int],
    mentioned: frozenset[int],
    full: bool,
    kinds: tuple[Any, ...],
) -> None:
    provider, topic = provider_of(policy), Topic()
    order = 3, Random(1)
    run(provider, topic, bets_on(known), order, False)
    provider.asked()
    chosen = api(language_keys={"sv-SE": "sv"})
    scope, references = Task.translations(chosen, kinds), bets_on(mentioned)
    rows = Translations(chosen, topic.codec, topic.known(references, full, scope)).estimate()
    asyncio.run(translate(provider, topic, references, full=full, settings=chosen, scope=scope))
    asked = provider.asked()
    for endpoint in ENDPOINTS:
        row = next((row for row in rows if matches(row.endpoint, endpoint)), None)
        least, most = (row.least, row.most) if row else (0, 0)
        assert least <= asked[endpoint]
        assert most is None or asked[endpoint] <= most


longs = st.integers(-(2**63), 2**63 - 1)
ids = st.none() | longs
moments = st.integers(0, 2**40).map(lambda millis: millis / 1000)
offsets = st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))


@given(
    st.builds(
        Translation,
        st.sampled_from(KINDS),
        longs,
        st.dictionaries(st.text(), st.text()),
        *(ids,) * 4,
        st.none() | st.lists(longs),
        ids,
    )
)
def test_a_translation_survives_its_codec(record: Translation) -> None:
    codec = Codec(load("translation"), 1)
    assert Translation.from_avro(codec.decode(codec.encode(record.to_avro("s")))) == record


@given(st.builds(Currency, st.text(), st.sampled_from(get_args(CurrencyType)), longs))
def test_a_currency_survives_its_codec(record: Currency) -> None:
    codec = Codec(load("currency"), 1)
    assert Currency.from_avro(codec.decode(codec.encode(record.to_avro("s")))) == record


@given(
    st.builds(
        Snapshot,
        st.text(),
        st.text(),
        moments,
        moments,
        st.none() | moments,
        st.booleans(),
        st.lists(st.text()).map(tuple),
        st.lists(st.text()).map(tuple),
        st.lists(st.text()).map(tuple),
        st.lists(st.builds(Omission, st.text(), st.none() | st.text(), st.text())).map(tuple),
        st.integers(0, 2**40),
        st.dictionaries(st.text(), st.builds(Counts, *(st.integers(0, 2**40),) * 3)),
        offsets,
        offsets,
    )
)
def test_a_snapshot_survives_its_codec(record: Snapshot) -> None:
    codec = Codec(load("snapshot"), 1)
    assert Snapshot.from_avro(codec.decode(codec.encode(record.to_avro()))) == record
