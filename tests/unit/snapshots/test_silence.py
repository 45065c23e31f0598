"""A provider that falls silent, as a whole or at one endpoint, does not hold a run for hours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

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
from bridge.snapshots.usage import EventPlace, Use
from bridge.snapshots.wanted import Task
from tests.unit.snapshots.provider import SPORTS, api, now
from tests.unit.snapshots.world import Topic, alone
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


def entity(number: int) -> dict[str, Any]:
    return {"id": number, "translations": {"en": f"n{number}"}}


def content(path: str, listed: Mapping[str, Iterable[int]]) -> object:
    """What the provider knows."""
    if found := re.search(EVENT, path):
        one = {"sport": entity(1), "region": entity(1), "league": entity(1), "competitors": []}
        return {"eventTranslation": entity(int(found[1])), **one}
    if found := re.search(MARKETS, path):
        number = int(found[1])
        return [{"marketTypeId": 1, "marketTranslations": entity(number), "selections": [entity(number)]}]
    if found := re.search(r"/en/(\d+)/markets", path):
        text = {"id": int(found[1]), "language": "en", "translation": "x"}
        return [{"marketTypeId": 1, "market": text, "selections": [text]}]
    if found := re.search(COMPETITOR, path):
        return entity(int(found[1]))
    kind = path.rpartition("/")[2]
    return [{"id": number, "language": "en", "translation": "x"} for number in listed.get(kind, [1])]


def fetched(mood: Mood, *, events: int = 0, markets: int = 0, vanished: int = 0) -> Ended:
    """Ask such a provider for events, for markets, and for a tenth of the competitors, which no list has."""
    settings = api(requests_per_second=5.0)
    competitors = range(1, 9 * vanished + 1)

    async def answer(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.05)
        path = request.url.path
        found = mood(path, asyncio.get_running_loop().time())
        if found is HANG:
            await asyncio.sleep(1e7)
        return found or httpx2.Response(
            200, content=orjson.dumps(content(path, {"competitors": competitors}))
        )

    topic = Topic()
    competitor = topic.codec.encode(Translation("competitor", 1, {"en": "x"}).to_avro("s"))
    topic.update((b"competitor:%d" % number, competitor) for number in range(1, 10 * vanished + 1))
    used = alone(*range(1, events + 1))
    for number in range(1, markets + 1):
        used.of["event"].setdefault(number, Use(0, 1, EventPlace(1, 1, 1))).markets = {number}
    kinds = ["competitor"] if vanished else ["event", "market"] if events else ["market"]
    settings = settings.model_copy(update={"kinds": tuple(kinds)})

    async def story() -> Ended:
        error = None
        async with Client(settings, clock=now, network=httpx2.MockTransport(answer)) as client:
            found = topic.known(used, True, Task.translations(settings))
            job = Translations(settings, topic.codec, found, now)
            left_out = owed = 0
            try:
                portion = await job.run(client, "id")
                left_out, owed = len(portion.left_out), len(portion.owed)
            except ApiError as caught:
                error = caught
        return Ended(asyncio.get_running_loop().time() / HOUR, error, left_out, owed)

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
        if hangs and path.endswith("/all/event/5"):
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
