"""A provider that falls silent, as a whole or at one endpoint, does not hold a run for hours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import httpx2
import orjson
import pytest

from bridge.clock import Instant
from bridge.errors import ApiError, Unanswered
from bridge.rest.answers import Answered
from bridge.rest.client import Client
from bridge.rest.endpoints import Request
from bridge.snapshots.asking import Account
from bridge.snapshots.model import Translation
from bridge.snapshots.translations import Translations
from bridge.snapshots.usage import EventPlace, Usage, Use
from bridge.snapshots.wanted import Task
from bridge_sandbox.provider.world.entities import Sizes, World
from tests.unit.snapshots.provider import SPORTS, api, now
from tests.unit.snapshots.world import NOW, Provider, Topic
from tests.virtual.loop import run

T = TypeVar("T")

HOUR = 3600.0
EVENT, MARKETS = r"/all/event/(\d+)", r"/all/(\d+)/markets"
COMPETITOR = r"/all/competitor/(\d+)"

Mood = Callable[[str, float], httpx2.Response | None]
"""What the provider answers to a path at a time in seconds, None if all is well. HANG for no answer."""
HANG = httpx2.Response(599)


class Ended(NamedTuple):
    """How a run ended."""

    hours: float
    error: ApiError | None
    left_out: int
    owed: int


def fetched(mood: Mood, *, events: int = 0, markets: int = 0, vanished: int = 0, owed: int = 0) -> Ended:
    """Ask for events, for markets, for a tenth of the competitors, which no list has, or for what is owed."""
    kinds = ("competitor",) if vanished else ("event", "market") if events or owed else ("market",)
    settings = api(requests_per_second=5.0, kinds=kinds)
    sizes = Sizes(leagues=1, competitors=10 * vanished or 2, events=max(events, markets, owed, 1))
    world = World(7, NOW, sizes)
    provider, topic, used = Provider(world=world, languages=settings.languages), Topic(), Usage()
    if vanished:
        for place, one in enumerate(world.competitors):
            record = Translation("competitor", one.id, {"en": "x"})
            topic[record.key] = topic.codec.encode(record.to_avro("s"))
            if not place % 10:
                provider.catalogue.remove("competitor", one.id)
    elif owed:
        topic.owed = {f"event:{event.id}" for event in world.events}
    else:
        for event in world.events:
            use = used.of["event"].setdefault(event.id, Use(0, 1, EventPlace(1, 1, 1)))
            use.markets = {1} if markets else set()

    async def answer(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.05)
        found = mood(request.url.path, asyncio.get_running_loop().time())
        if found is HANG:
            await asyncio.sleep(1e7)
        told = provider.rest.answer(NOW, request.url.raw_path.decode(), provider.authorization)
        one = orjson.dumps(orjson.loads(told.body)[:1]) if "/markets" in request.url.path else told.body
        return found or httpx2.Response(told.status, content=one)

    async def story() -> Ended:
        error, left_out, left = None, 0, 0
        async with Client(settings, clock=now, network=httpx2.MockTransport(answer)) as client:
            found = topic.known(used, not owed, Task.translations(settings))
            job = Translations(settings, topic.codec, found, now)
            try:
                portion = await job.run(client, "id")
                left_out, left = len(portion.left_out), len(portion.owed)
            except ApiError as caught:
                error = caught
        return Ended(asyncio.get_running_loop().time() / HOUR, error, left_out, left)

    return run(story())


def at(pattern: str, answer: httpx2.Response, *, after: float = 0.0, until: float = float("inf")) -> Mood:
    """What one endpoint answers for a while."""
    return lambda path, at: answer if after <= at < until and re.search(pattern, path) else None


FAILING = httpx2.Response(500)


@pytest.mark.parametrize("answer", [FAILING, HANG], ids=["500", "nothing"])
def test_an_endpoint_that_never_answers_does_not_keep_a_run_from_its_end(answer: httpx2.Response) -> None:
    ended = fetched(at(MARKETS, answer), events=1000, markets=1000)
    assert (ended.error, ended.hours < 1.5) == (None, True), ended
    assert ended.owed == 1000, "asked again in the next run"


@pytest.mark.parametrize("after", [60.0, 190.0], ids=["in the middle", "with a few left"])
def test_a_provider_that_falls_silent_ends_the_run_within_the_hour(after: float) -> None:
    ended = fetched(at("", HANG, after=after), events=1000, markets=1000)
    assert isinstance(ended.error, ApiError)
    assert ended.hours < 1, ended
    assert "no answer" in str(ended.error)


def test_a_silence_while_asking_what_has_vanished_costs_only_these() -> None:
    ended = fetched(at(COMPETITOR, HANG), vanished=500)
    assert (ended.error, ended.owed, ended.hours < 1) == (None, 0, True), ended


def test_events_that_hang_do_not_hold_up_the_others() -> None:
    ended = fetched(at(r"/all/event/\d*0$", HANG), events=1000)
    assert (ended.error, ended.owed, ended.hours < 1.5) == (None, 100, True), ended


@pytest.mark.parametrize("seconds", [60.0, 120.0])
def test_after_an_outage_of_minutes_the_run_goes_on(seconds: float) -> None:
    ended = fetched(at("", FAILING, after=20, until=20 + seconds), events=2000)
    assert (ended.error, ended.left_out, ended.owed < 200) == (None, ended.owed, True), ended


@pytest.mark.parametrize("hangs", [False, True])
def test_an_outage_is_survived_whatever_hangs(hangs: bool) -> None:
    def mood(path: str, at: float) -> httpx2.Response | None:
        if hangs and path.endswith("/all/event/20000005"):
            return HANG
        return FAILING if 215 <= at < 315 else None

    ended = fetched(mood, events=1750)
    assert (ended.error, ended.left_out == ended.owed < 100) == (None, True), ended


async def test_an_endpoint_that_nobody_asked_for_an_hour_is_not_silent() -> None:
    time, sent = [0.0], list[float]()

    class Failing:
        async def ask(self, _request: Request[T], attempts: int | None = None) -> Answered[T]:
            sent.append(time[0])
            raise Unanswered("HTTP 502")

    account = Account(Failing(), api(), clock=lambda: Instant(1.79e9 + time[0], time[0]))
    for moment in (0.0, 3700.0, 3701.0):
        time[0] = moment
        with pytest.raises(Unanswered):
            await account.ask(SPORTS)
    assert sent == [0.0, 3700.0]


def test_a_pause_of_an_hour_each_time_ends_the_run_before_the_deadline_of_a_job() -> None:
    """`Retry-After: 3000`, again and again."""
    slow = httpx2.Response(429, headers={"Retry-After": "3000"})
    ended = fetched(at(EVENT, slow, after=20), events=1000)
    assert isinstance(ended.error, ApiError)
    assert ended.hours < 5, ended


def test_what_is_owed_is_put_off_after_a_few_requests_without_an_answer() -> None:
    ended = fetched(at(EVENT, httpx2.Response(429, headers={"Retry-After": "60"})), owed=300)
    assert (ended.error, ended.owed, ended.hours < 0.5) == (None, 300, True), ended
