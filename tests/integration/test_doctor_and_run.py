"""What ends `bridge run` or holds it up, `bridge doctor` says beforehand: the table in docs/operations.md."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bridge.avro.schemas import load
from bridge.feed.rate_limits import Attempt
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge_sandbox.provider.faults import ClockJump, Garbage, Refuse
from bridge_sandbox.provider.server import Simulator
from tests.fake_registry import APICURIO, FakeRegistry, served
from tests.faults.test_refused_member import stray
from tests.harness import Place, simulate, until
from tests.integration.rights import GROUP, ID, READ, TOPIC, WRITE, Right, denied
from tests.integration.test_doctor import prepared, write
from tests.integration.test_gaps import four_days_ago
from tests.integration.test_schema_ids import ORDER

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
MARKS = {"ok": "✓", "warn": "!", "trouble": "~", "fail": "✗", "skipped": "-"}


class Row(NamedTuple):
    """What `bridge run` does, why, and what `bridge doctor` says."""

    outcome: str
    cause: str
    mark: str
    check: str


def table() -> list[Row]:
    """The table of the page."""
    head = "| `bridge run` | because | `doctor` |\n|---|---|---|\n"
    body = PAGE.read_text("utf-8").partition(head)[2].partition("\n\n")[0]
    return [Row(*found) for found in re.findall(r"^\| (.+?) \| (.+?) \| (\S) `(\w+)` \|$", body, re.M)]


Found: TypeAlias = tuple[dict[str, str], str]
"""The settings, and what both say."""
Situation: TypeAlias = Callable[[Place, Simulator], AbstractAsyncContextManager[Found]]
NOWHERE = "http://127.0.0.1:1"


def given(words: str, **settings: str) -> Situation:
    """A situation that these settings make."""

    @asynccontextmanager
    async def prepare(_place: Place, _feed: Simulator) -> AsyncIterator[Found]:
        yield settings, words

    return prepare


def lacking(right: Right) -> Situation:
    """A situation in which nobody has the right."""

    @asynccontextmanager
    async def prepare(place: Place, _feed: Simulator) -> AsyncIterator[Found]:
        assert (await place.ran("topics", "apply")).returncode == 0
        with denied(place, right):
            # Of a group, several rights are asked for at once.
            name, words = f"{place.prefix}.{right.name}", f"no right to {right.words(place.prefix)}"
            yield {}, name if right.kind is GROUP else words

    return prepare


async def commit(
    place: Place, at: float, ledger: Sequence[Attempt] = (), feed: str = "settlement-v4"
) -> None:
    """Write the checkpoint of a feed that has received a message."""
    counters = Counters(received=1, pings=1)
    checkpoint = Checkpoint(feed, int(at) - 30, State.LIVE, tuple(ledger), counters, at, "me")
    write(place, "feed-checkpoint", "checkpoints", await prepared(place), checkpoint.to_avro())


@asynccontextmanager
async def unreadable_file(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    name = "FEED__AUTH_VALUE_FILE"
    yield {"FEED__AUTH": "bearer", name: str(place.directory / "none")}, f"BRIDGE_{name}: cannot read"


@asynccontextmanager
async def refused_credential(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    feed.inflict(Refuse(status=401))
    assert await place.bridge(FEED__BASE_URL=feed.url).wait() == 3
    yield {}, "HTTP 401"


@asynccontextmanager
async def inconvertible(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    settings = {
        "FEED__ON_UNCONVERTED": "stop",
        "FEED__UNCONVERTED_MESSAGES": "5",
        "FEED__UNCONVERTED_SECONDS": "1",
    }

    async with simulate(rate=0.01) as silent:

        async def spoil() -> None:
            while True:
                silent.inflict(Garbage(count=20))
                await asyncio.sleep(0.2)

        settings["FEED__BASE_URL"] = silent.url
        spoiling = asyncio.create_task(spoil())
        assert await place.bridge(**settings).wait() == 11
        yield settings, "nothing that came since"
        spoiling.cancel()


@asynccontextmanager
async def another_clock(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    feed.inflict(ClockJump(by=-600))
    yield {}, "behind ours"


@asynccontextmanager
async def declared_gap(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    settings = {"FEED__START": four_days_ago()[1]}
    assert await place.bridge(FEED__BASE_URL=feed.url, **settings).wait() == 5
    yield settings, "TooOld"


@asynccontextmanager
async def future_position(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    await commit(place, time.time() + 3600)
    yield {}, "PositionInFuture"


@asynccontextmanager
async def wrong_topic(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    name = place.make_topic("bets", 2)
    yield {}, f"{name}: cleanup.policy is delete, must be compact"


@asynccontextmanager
async def lost_topic(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    bridge = place.bridge(FEED__BASE_URL=feed.url)
    await until(lambda: bool(place.read("bets")), "bets")
    assert await bridge.end() == 0
    yield {}, place.delete_topic("bets")


@asynccontextmanager
async def other_schema(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    subject = f"{place.prefix}.bets-value"
    other = {"type": "record", "name": "Other", "fields": [{"name": "a", "type": "string"}]}
    with SchemaRegistryClient({"url": place.cluster.registry_url}) as registry:
        registry.register_schema(subject, Schema(json.dumps(other), "AVRO"))
        registry.set_compatibility(subject, "FULL_TRANSITIVE")
    yield {}, subject


@asynccontextmanager
async def altered_schema(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    fake, former = FakeRegistry(APICURIO), deepcopy(load("settled-bet"))
    former["fields"][0]["aliases"] = ["id"]
    fake.subjects = {f"{place.prefix}.bets-value": json.dumps(former)}
    with served(fake) as url:
        yield {"REGISTRY__URL": url}, f"{place.prefix}.bets-value: taken for another schema"


@asynccontextmanager
async def other_registry(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    before, after = FakeRegistry(), FakeRegistry()
    with served(before) as url:
        bridge = place.bridge(FEED__BASE_URL=feed.url, REGISTRY__URL=url)
        await until(lambda: bool(place.read("bets")), "bets")
        assert await bridge.end() == 0
    # The ids of a fake registry follow from the order: that of the checkpoint stays.
    others = {name: text for name, text in before.subjects.items() if not name.endswith(".bets-value")}
    after.subjects = {"orders-value": json.dumps(ORDER), **others}
    with served(after) as url:
        yield {"REGISTRY__URL": url}, "schema 100 is something else in the registry (a shop.Order"


@asynccontextmanager
async def other_feed(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    await commit(place, time.time(), feed="one")
    yield {}, "the feed one"


@asynccontextmanager
async def stray_member(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    assert (await place.ran("topics", "apply")).returncode == 0
    with stray(place, **{"partition.assignment.strategy": "range"}):
        yield {}, ""


@asynccontextmanager
async def hanging_transaction(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    assert (await place.ran("topics", "apply")).returncode == 0
    other = place.open_transaction("other", transaction_timeout_ms=120_000)
    other.produce(f"{place.prefix}.checkpoints", b"?", b"other", 0)
    assert other.flush(30) == 0
    try:
        yield {}, f"{place.prefix}.checkpoints"
    finally:
        other.abort_transaction(30)


@asynccontextmanager
async def used_limit(place: Place, feed: Simulator) -> AsyncIterator[Found]:
    now = time.time()
    await commit(place, now, [Attempt(now - 60 + n, 600, False, now - 60 + n) for n in range(5)])
    yield {}, "5 proper connection attempts in 5m"


NO_RIGHTS = READS_GROUP, WRITES_TOPIC, WRITES_WITH_ID = (
    lacking(Right(READ, GROUP, "settlement-v4.owner")),
    lacking(Right(WRITE, TOPIC, "bets")),
    lacking(Right(WRITE, ID, "settlement-v4")),
)
SITUATIONS: dict[str, Situation] = {
    "a setting is missing or wrong, or a file cannot be used": unreadable_file,
    "the provider refuses the credential, and did so to the last run": refused_credential,
    "nothing of what comes can be converted, as at the last run": inconvertible,
    "the provider's clock and ours are too far apart": another_clock,
    "the position, or `feed.start`, is older than what the provider can replay": given(
        "TooOld", FEED__START=four_days_ago()[1]
    ),
    "that gap was declared, and `feed.on_gap` is `stop`": declared_gap,
    "the position lies in the future: a clock was ahead": future_position,
    "a topic would lose data": wrong_topic,
    "a topic was lost, or is another one than that which was written": lost_topic,
    "a schema is not compatible with what is registered": other_schema,
    "the registry takes a schema for an earlier one that means something else": altered_schema,
    "the registry is another one, or an older state of it": other_registry,
    "another feed uses the topics": other_feed,
    "a right on the owner group is missing": READS_GROUP,
    "the right to write a topic is missing": WRITES_TOPIC,
    "the right to write with the transactional id is missing": WRITES_WITH_ID,
    "the brokers do not allow the session time-out": given(
        "kafka.session_timeout_ms", KAFKA__SESSION_TIMEOUT_MS="500", KAFKA__HEARTBEAT_INTERVAL_MS="100"
    ),
    "what is no bridge is in the owner group": stray_member,
    "no broker answers": given("no broker answer", KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:1"),
    "the registry does not answer": given(
        f"the schema registry at {NOWHERE} did not answer", REGISTRY__URL=NOWHERE
    ),
    "a transaction of somebody else hangs in our topics": hanging_transaction,
    "the provider's limits are used up": used_limit,
    "nothing answers at the provider's address": given("cannot be reached", FEED__BASE_URL=NOWHERE),
}


def test_the_table_is_that_of_the_tests() -> None:
    assert [row.cause for row in table()] == list(SITUATIONS)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row,
            marks=[pytest.mark.xdist_group("rights")] if SITUATIONS[row.cause] in NO_RIGHTS else (),
            id=row.cause,
        )
        for row in table()
    ],
)
async def test_the_doctor_says_beforehand_what_a_run_does(row: Row, request: pytest.FixtureRequest) -> None:
    prepare = SITUATIONS[row.cause]
    place: Place = request.getfixturevalue("guarded" if prepare in NO_RIGHTS else "place")
    async with simulate() as feed, prepare(place, feed) as (given, words):
        settings = {"FEED__BASE_URL": feed.url, **given}
        connected = len(feed.connections)
        ran = await place.ran("doctor", "--json", **settings)
        assert len(feed.connections) == connected
        found = {finding["check"]: finding for finding in json.loads(ran.stdout)}[row.check]
        assert (MARKS[found["outcome"]], words in found["message"]) == (row.mark, True), found
        bridge = place.bridge(**settings)
        kind, _, code = row.outcome.partition(" ")
        if kind == "exit":
            assert await bridge.wait() == int(code), bridge.text()
        else:
            await until(lambda: kind.strip("`") in bridge.states(), kind, so_far=bridge.text)
            await until(lambda: words in bridge.text(), words, so_far=bridge.text)
            assert await bridge.end() == 0
        assert words in bridge.text()
