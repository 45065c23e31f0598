"""A provider that falls silent, as a whole or at one endpoint, does not hold a run for hours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
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
from tests.unit.snapshots.provider import SPORTS, api, now
from tests.unit.snapshots.world import Topic, at_the_end
from tests.virtual.loop import run

T = TypeVar("T")

HOUR = 3600.0
EVENT, MARKETS = r"/all/event/(\d+)", r"/all/(\d+)/markets"
COMPETITOR = r"/all/competitor/(\d+)"

BOTH = {"events": 300, "markets": 300}

Mood = Callable[[str, float], httpx2.Response | None]
"""What the provider answers to a path at a time in seconds, None if all is well. HANG for no answer."""
HANG = httpx2.Response(599)


class Ended(NamedTuple):
    """How a run ended."""

    hours: float
    error: ApiError | None
    left_out: int
    owed: int


def told(path: str, competitors: Iterable[int]) -> object:
    """What the provider answers to a path if all is well."""
    match path.split("/")[3:]:
        case ["all", "event", number]:
            names = ("eventTranslation", "sport", "region", "league")
            return dict.fromkeys(names, named(int(number))) | {"competitors": []}
        case ["all", _, "markets"]:
            return [{"marketTypeId": 1, "marketTranslations": named(1), "selections": []}]
        case ["all", "competitor", number]:
            return named(int(number)) | {"translations": {}}
        case [language, "competitors"]:
            return [{"id": number, "language": language, "translation": "x"} for number in competitors]
        case [language, _, "markets"]:
            market = {"id": 1, "language": language, "translation": "x"}
            return [{"marketTypeId": 1, "market": market, "selections": []}]
    raise AssertionError(path)


def named(number: int) -> dict[str, object]:
    return {"id": number, "translations": dict.fromkeys(api().languages, "x")}


def fetched(mood: Mood, *, events: int = 0, markets: int = 0, vanished: int = 0, owed: int = 0) -> Ended:
    """Ask for events, for markets, for a tenth of the competitors, which no list has, or for what is owed."""
    kinds = ("competitor",) if vanished else ("event", "market") if events or owed else ("market",)
    settings = api(requests_per_second=5.0, kinds=kinds)
    topic, used = Topic(), Usage()
    for number in range(10 * vanished):
        record = Translation("competitor", number, {"en": "x"})
        topic[record.key] = topic.codec.encode(record.to_avro("s"))
    topic.owed = {f"event:{number}" for number in range(1, owed + 1)}
    for number in range(1, max(events, markets) + 1):
        use = used.of["event"].setdefault(number, Use(0, 1, EventPlace(1, 1, 1)))
        use.markets = {1} if markets else set()

    async def answer(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0.05)
        path = request.url.path
        found = mood(path, asyncio.get_running_loop().time())
        if found is HANG:
            await asyncio.sleep(1e7)
        listed = (number for number in range(10 * vanished) if number % 10)
        return found or httpx2.Response(200, content=orjson.dumps(told(path, listed)))

    async def story() -> Ended:
        error, left_out, left = None, 0, 0
        async with Client(settings, clock=now, network=httpx2.MockTransport(answer)) as client:
            found = topic.known(used, not owed, Task.translations(settings))
            job = Translations(settings, topic.codec, found, now)
            try:
                portion = await job.run(client, "id", lambda *_: None, at_the_end)
                left_out, left = len(portion.left_out), len(portion.owed)
            except ApiError as caught:
                error = caught
        return Ended(asyncio.get_running_loop().time() / HOUR, error, left_out, left)

    return run(story())


def at(pattern: str, answer: httpx2.Response, *, after: float = 0.0, until: float = float("inf")) -> Mood:
    """What one endpoint answers for a while."""
    return lambda path, at: answer if after <= at < until and re.search(pattern, path) else None


FAILING = httpx2.Response(500)
A_MINUTE, AN_HOUR = (httpx2.Response(429, headers={"Retry-After": seconds}) for seconds in ("60", "3000"))


def hangs_and_fails(path: str, at: float) -> httpx2.Response | None:
    """One event never has an answer, and none has in an outage."""
    return HANG if path.endswith("/all/event/6") else FAILING if 60 <= at < 160 else None


@pytest.mark.parametrize(
    ("mood", "asked", "hours", "owed"),
    [
        pytest.param(at(MARKETS, FAILING), BOTH, 0.5, range(300, 301), id="markets fail"),
        pytest.param(at(MARKETS, HANG), BOTH, 0.5, range(300, 301), id="markets hang"),
        pytest.param(at(COMPETITOR, HANG), {"vanished": 300}, 0.5, range(1), id="what has vanished hangs"),
        pytest.param(at(r"/all/event/\d*0$", HANG), {"events": 300}, 0.4, range(30, 31), id="some hang"),
        pytest.param(hangs_and_fails, {"events": 2000}, 0.5, range(1, 200), id="one hangs, and an outage"),
        pytest.param(at(EVENT, A_MINUTE), {"owed": 300}, 0.5, range(300, 301), id="what is owed is refused"),
        pytest.param(at("", HANG, after=30), BOTH, 0.5, "no answer", id="all in the middle"),
        pytest.param(at("", HANG, after=57), BOTH, 0.5, "no answer", id="all with a few left"),
        pytest.param(at(EVENT, AN_HOUR, after=20), {"events": 300}, 5, "HTTP 429", id="an hour each time"),
    ],
)
def test_a_silence_is_survived_or_ends_the_run_soon(
    mood: Mood, asked: dict[str, int], hours: float, owed: range | str
) -> None:
    ended = fetched(mood, **asked)
    assert ended.hours < hours, ended
    if isinstance(owed, str):
        assert owed in str(ended.error)
    else:
        assert (ended.error, ended.owed in owed) == (None, True), ended
        assert ended.left_out >= ended.owed


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
