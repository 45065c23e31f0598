"""Fakes for the snapshot jobs, without a network or Kafka: a provider, a topic, and runs of a job."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from inspect import isawaitable
from random import Random
from typing import Any, Self, TypeVar

import orjson

from bridge.avro.codec import Codec
from bridge.avro.schemas import SCHEMAS, load
from bridge.clock import Instant
from bridge.config import ApiSettings, Settings
from bridge.config.api import KINDS
from bridge.errors import ApiError, AuthError, Forbidden, Rejected, Unanswered
from bridge.kafka.batch import Record
from bridge.rest.answers import Answered
from bridge.rest.endpoints import Request
from bridge.rest.json_stream import Unfinished
from bridge.snapshots.currencies import Currencies
from bridge.snapshots.job import make_snapshot
from bridge.snapshots.model import Currency, Job, Offsets, Snapshot, Translation
from bridge.snapshots.published import Portion
from bridge.snapshots.state import JobState
from bridge.snapshots.translations import Translations
from bridge.snapshots.usage import HOUR_SECONDS, EventPlace, Usage, Use
from bridge.snapshots.wanted import Found, Task
from bridge_sandbox.provider.rest.app import Rest
from bridge_sandbox.provider.rest.faults import Answer, RestFault
from bridge_sandbox.provider.rest.routes import Endpoint
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.world.entities import Event, Sizes, World
from tests.integration.snapshots import key_of
from tests.unit.snapshots.provider import answered

T = TypeVar("T")

NOW = 1_790_000_100.0
WORLD = World(7, NOW, Sizes(sports=3, regions=2, leagues=5, competitors=40, events=12))
LANGUAGES = ("en", "sv", "de")
DAY = 86_400.0
BOTH: dict[str, Any] = {"only_in_lists": {"sv"}, "only_in_all": {"de"}, "event_members": "ids"}
"""All 13 endpoints are asked: lists and markets lack a language, and so does what gives all of them."""


def api(**changes: Any) -> ApiSettings:
    """Settings with three languages."""
    return ApiSettings(**{"languages": LANGUAGES, **changes})


Wrong = type[BaseException] | Callable[[Any], Any]


class Provider:
    """Answers as the client would hand it on; `shuffle` shuffles which of several answers comes first."""

    def __init__(self, shuffle: Random | None = None, world: World = WORLD, **policy: Any) -> None:
        chosen = {"rate": 1e6, "burst": 10**6, "languages": LANGUAGES, **policy}
        self.rest = Rest(world, RestPolicy(**chosen))
        self.catalogue = self.rest.catalogue
        self.wrong: dict[str, Wrong] = {}
        """Pattern of targets → what is raised, or what is made of the right content, None if there is none:
        another, or the same if nothing is returned."""
        self.attempts: dict[str, int | None] = {}
        """Target → how many it was given the last time."""
        self.most_at_once = 0
        self._at_once = 0
        self.shuffle = shuffle
        self.now = NOW
        self.authorization = f"Bearer {self.rest.tokens.mint(NOW)}"
        self.requests = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, request: Request[T], attempts: int | None = None) -> Answered[T]:
        """As `Client.ask`, without another try."""
        self.requests += 1
        self.attempts[request.target] = attempts
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            for _ in range(self.shuffle.randrange(12) if self.shuffle else 0):
                await asyncio.sleep(0)
            answer = self.rest.answer(self.now, request.target, self.authorization)
            for pattern in filter(lambda it: re.search(it, request.target), self.wrong):
                answer = await self._spoilt(answer, self.wrong[pattern])
        finally:
            self._at_once -= 1
        match answer.status:
            case 200:
                try:
                    return answered(request, answer.body)
                except Unfinished as error:
                    raise Unanswered(str(error)) from None
            case 404 if request.may_be_unknown:
                return Answered(None)
            case 401:
                raise AuthError(f"{request}: 401")
            case 403:
                raise Forbidden(f"{request}: 403")
            case 400 | 404:
                raise Rejected(f"{request}: {answer.status}", answer.status)
            case 429 | 500 | 502 | 503:
                raise Unanswered(f"{request}: {answer.status}")
            case status:
                raise ApiError(f"{request}: {status}")

    async def _spoilt(self, answer: Answer, wrong: Wrong) -> Answer:
        if isinstance(wrong, type):
            raise wrong("on purpose")
        content = orjson.loads(answer.body) if answer.status == 200 else None
        other = wrong(content)
        if isawaitable(other):
            other = await other
        return Answer(200, json.dumps(content if other is None else other).encode())

    def inject(self, *endpoints: Endpoint | None, **fault: Any) -> None:
        """Let requests to each endpoint (None: to any) fail: one, or as many as `times` says (None: all)."""
        for endpoint in endpoints:
            self.rest.faults.inject(RestFault(endpoint=endpoint, **fault))

    def answers(self, endpoint: Endpoint, content: object, times: int | None = None, **fault: Any) -> None:
        """Answer requests to an endpoint with that content: all of them, or as many as `times` says."""
        self.inject(endpoint, body=orjson.dumps(content).decode(), times=times, **fault)

    def asked(self) -> Counter[Endpoint]:
        """How often each endpoint was asked since the last time."""
        found = Counter(exchange.endpoint for exchange in self.rest.requests if exchange.endpoint)
        self.rest.requests.clear()
        return found

    def truth(self) -> dict[bytes, dict[str, str]]:
        """Key → every text that there is."""
        return {
            key_of(known.kind, known.id, known.relations).encode(): {
                str(k): v for k, v in known.texts.items()
            }
            for known in self.catalogue.truth()
        }


_TRANSLATIONS = Codec(load("translation"), 1)


@lru_cache(maxsize=20_000)
def _texts(value: bytes) -> dict[str, str]:
    """Return language → text of a translation's record."""
    texts: dict[str, str] = _TRANSLATIONS.decode(value)["translations"]
    return texts


class Topic(dict[bytes, bytes]):
    """What a compacted topic of a job holds: key → value."""

    def __init__(self, job: Job = "translations") -> None:
        self.job: Job = job
        self.codec = Codec(load(SCHEMAS[job]), 1)
        self._snapshots = 0
        self.owed: set[str] = set()
        self.missing: set[str] = set()

    def task(self, settings: ApiSettings) -> Task:
        """A run of everything."""
        return Task.translations(settings) if self.job == "translations" else Task(self.job)

    def known(self, used: Usage, full: bool, task: Task | None = None) -> Found:
        """What a run finds."""
        state = JobState("translations", {})
        state.usage = used
        state.refused |= {"owed": self.owed, "missing": self.missing}
        return Found(task or self.task(api()), dict(self), used, state, full)

    def snapshot_id(self) -> str:
        """The id of the next snapshot."""
        self._snapshots += 1
        return f"snapshot-{self._snapshots}"

    def take(self, portion: Portion, found: Found) -> Portion:
        """What the publisher does with what a run has made of what it found."""
        self.owed, self.missing = portion.owed, found.state.refused["missing"]
        assert portion.removed <= self.keys(), "a tombstone for what is not there"
        assert not portion.removed & portion.written.keys()
        for gone in portion.removed:
            del self[gone]
        self.update(portion.written)
        assert sum(counts.records for counts in portion.counts.values()) == len(self)
        return portion

    def texts(self) -> dict[bytes, dict[str, str]]:
        """Key → language → text."""
        return {key: dict(_texts(value)) for key, value in self.items()}

    def translation(self, key: str) -> Translation:
        """The record of a key."""
        return Translation.from_avro(self.codec.decode(self[key.encode()]))

    def currency(self, symbol: str) -> Currency:
        """The record of a symbol."""
        return Currency.from_avro(self.codec.decode(self[symbol.encode()]))


def item(event: Event | None, place: int = 0, /, **changes: Any) -> dict[str, Any]:
    """A bet item on the market at that place of the event, and on its first selection."""
    found = event.markets[place] if event else None
    return {
        "event": {"id": event.id} if event else None,
        "market": {"id": found.id, "type": found.type} if found else None,
        "selectionId": found.selections[0] if found else 0,
        "competitionId": event.league.id if event else 0,
        "countryId": event.league.region.id if event else 0,
        "sportId": event.league.sport.id if event else 0,
        "betBuilderItems": None,
        **changes,
    }


def bet(items: Iterable[dict[str, Any]] | None = (), currency: str | None = "EUR") -> dict[str, Any]:
    """A settled bet, as it is read with `references_schema`."""
    return {
        "selections": None if items is None else list(items),
        "amount": currency and {"currency": currency},
    }


def mention(*events: Event, currencies: Iterable[str] = ()) -> Usage:
    """Bets on every market of the events, and bets in the currencies."""
    used = Usage()
    for event in events:
        used.add(bet([item(event, place) for place in range(len(event.markets))]))
    for symbol in currencies:
        used.add(bet(currency=symbol))
    return used


def keys(used: Usage) -> set[bytes]:
    """The keys of all that bets use."""
    return {key for kind in KINDS for key in used.keys(kind)}


def alone(*events: int, place: tuple[int, int, int] = (1, 1, 1)) -> Usage:
    """Nothing but these events, without markets and selections."""
    used = Usage()
    used.of["event"] = {number: Use(0, 1, EventPlace(*place)) for number in events}
    return used


async def at_the_end(*_: object) -> None:
    """Publishes nothing before the end of a run."""


async def translate(
    provider: Provider,
    topic: Topic,
    references: Usage,
    *,
    full: bool = False,
    settings: ApiSettings | None = None,
    scope: Task | None = None,
) -> Portion:
    """One run of the job whose topic it is; the topic holds what it published."""
    settings = settings or api()
    found = topic.known(references, full, scope or topic.task(settings))
    of = Currencies if found.task.job == "currencies" else Translations
    job = of(settings, topic.codec, found)
    return topic.take(await job.run(provider, topic.snapshot_id(), lambda *_: None, at_the_end), found)


async def first_run(*events: Event, **policy: Any) -> tuple[Provider, Topic]:
    """A provider and the topic, after a run for bets on the events."""
    provider, topic = Provider(**policy), Topic()
    await translate(provider, topic, mention(*events))
    return provider, topic


def written(outcome: Portion) -> set[str]:
    """The keys that were written."""
    return {key.decode() for key in outcome.written}


class Runs:
    """Runs of a job, one after the other, by `make_snapshot`: its storage and its publisher in memory."""

    def __init__(self, name: Job = "translations") -> None:
        self.name: Job = name
        self.topic = Topic(name)
        self.state_topic: dict[bytes, bytes] = {}
        self.last: Snapshot | None = None
        self.now = NOW
        """The clock."""
        self.full = False
        """Whether the last run was."""
        self.records: list[Record] = []
        """What the last run published, its Snapshot record last."""
        self.snapshots: list[Snapshot] = []
        """Every Snapshot record."""
        self.reachable = True
        """Whether Kafka is, before the end of a run."""
        self._codecs = {"snapshot": Codec(load("snapshot"), 2), SCHEMAS[name]: self.topic.codec}
        self._read: list[tuple[float, Usage]] = []
        self._new: list[tuple[float, Usage]] = []

    def bets(self, references: Usage, at: float | None = None) -> None:
        """Bets that arrive now, or were received at that time."""
        self._new.append((self.now if at is None else at, references))

    def run(
        self, provider: Provider, *, full: bool = False, settings: ApiSettings | None = None, **narrowed: Any
    ) -> Snapshot:
        """One run, an hour after the last."""
        chosen = Settings(api=settings or api())
        self._keep_days = chosen.api.keep_days
        task = Task.translations(chosen.api, full=full, **narrowed)
        if self.name == "currencies":
            task = Task("currencies", full=full)
        kafka: Any = self
        client: Any = provider
        report = make_snapshot(chosen, task, kafka, client, self._codecs, kafka, lambda *_: None, self._clock)
        self.report = report
        self.full = report.full
        self.now += 3600
        assert self.last is not None
        return self.last

    @property
    def removed(self) -> set[bytes]:
        """The keys of the tombstones of the last run."""
        return {
            x.key or b"" for x in self.records if x.value is None and x.topic == f"settlement.{self.name}"
        }

    @property
    def owed(self) -> set[str]:
        """Names of what the provider failed to answer."""
        return self.state().refused["owed"]

    def state(self) -> JobState:
        return JobState(self.name, self.state_topic)

    def published(self) -> dict[bytes, bytes]:
        return dict(self.topic)

    def learn(
        self, state: JobState, now: float, save: Callable[[], None], progress: object
    ) -> tuple[int, str]:
        new = self._new
        self._read += new
        if not state.reads_on("topic-id", self._keep_days):
            new = [x for x in self._read if x[0] >= now - self._keep_days * DAY]
        self._new = []
        for at, references in new:
            merge(state, references, int(at // HOUR_SECONDS) * HOUR_SECONDS)
        state.learnt({0: len(self._read)}, "topic-id", self._keep_days)
        save()
        return len(new), ""

    def is_reachable(self) -> bool:
        return self.reachable

    def save(self, records: Sequence[Record]) -> None:
        for record in records:
            assert record.topic == "settlement.snapshot-state"
            put(self.state_topic, record)

    def publish(self, records: Sequence[Record], seal: Callable[[Offsets], Record]) -> Offsets:
        ends = {0: 7}
        for record in records:
            if record.topic == f"settlement.{self.name}":
                put(self.topic, record)
            else:
                self.save([record])
        sealed = seal(ends)
        assert (sealed.topic, sealed.key) == ("settlement.snapshots", self.name.encode())
        self.last = Snapshot.from_avro(self._codecs["snapshot"].decode(sealed.value or b""))
        assert sum(counts.records for counts in self.last.counts.values()) == len(self.topic)
        self.records = [*records, sealed]
        self.snapshots.append(self.last)
        return ends

    def _clock(self) -> Instant:
        return Instant(self.now, self.now)


def merge(state: JobState, used: Usage, hour: int) -> None:
    """Learn at that hour what these bets have used."""
    run = state._last_run + 1
    state.usage.newest = max(state.usage.newest, hour)
    for kind, uses in used.of.items():
        for id_, use in uses.items():
            if use.place:
                state.usage.note_event(id_, hour, run, use.place, {*use.markets}, {*use.selections})
            else:
                state.usage.note(kind, id_, hour, run)


def put(topic: dict[bytes, bytes], record: Record) -> None:
    """Write a record to a compacted topic."""
    assert record.key is not None
    if record.value is None:
        del topic[record.key]  # a tombstone for what is not there is an error
    else:
        topic[record.key] = record.value
