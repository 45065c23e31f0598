"""What bets mention must be learnt whole, whatever the settings were, the registry knows or others wrote."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import ApiSettings, KafkaSettings, RegistrySettings, Settings
from bridge.errors import SchemaError
from bridge.kafka import admin, clients
from bridge.snapshots import storage
from bridge.snapshots.state import JobState
from bridge.snapshots.storage import JobStorage
from tests.unit.snapshots.world import NOW, WORLD, Provider, Topic, api, mention, translate

DAY = 86_400.0


def settings(**changes: Any) -> Settings:
    return Settings(
        kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"),
        registry=RegistrySettings(url="http://127.0.0.1:1"),
        api=ApiSettings(**changes),
    )


class Message:
    """A record of the topic of bets."""

    def __init__(self, offset: int, value: bytes, at: float = NOW) -> None:
        self._offset, self._value, self._at = offset, value, at

    def topic(self) -> str:
        return "settlement.bets"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"bet-%d" % self._offset

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 1, round(self._at * 1000)


class Bets:
    """The topic; `read` are the offsets that were handed over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[Message] = []
        self.read: list[int] = []
        self.looked_up = 0
        monkeypatch.setattr(clients, "admin", lambda _: None)
        monkeypatch.setattr(admin, "topic_id", lambda *_: "id")
        monkeypatch.setattr(storage, "read_topic", self._read)
        monkeypatch.setattr(storage, "_received_since", self._since)
        monkeypatch.setattr(storage, "Registry", lambda _: self)

    def __enter__(self) -> Bets:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def schema_by_id(self, number: int) -> Any:
        self.looked_up += 1
        if number != 1:
            raise SchemaError(f"the registry refuses schema {number}: 404")
        return load("settled-bet")

    def _since(self, _: Settings, __: str, moment: float) -> dict[int, int]:
        young = [m.offset() for m in self.messages if m._at >= moment]
        return {0: min(young, default=len(self.messages))}

    def _read(
        self, _: Settings, topic: str, take: Callable[[Any], None], *, start: dict[int, int], **__: Any
    ) -> dict[int, int]:
        for message in self.messages[start.get(0, 0) :]:
            self.read.append(message.offset())
            take(message)
        return {0: len(self.messages)}


@pytest.fixture
def bets(monkeypatch: pytest.MonkeyPatch) -> Bets:
    return Bets(monkeypatch)


def learn(state: JobState, chosen: Settings) -> Any:
    return JobStorage(chosen, "currencies").learn(state, NOW, lambda: None)


def bet_bytes(schema_id: int = 1, currency: str = "EUR") -> bytes:
    """Some settled bet."""
    codec = Codec(load("settled-bet"), schema_id)
    named: dict[str, Any] = {}
    datum = _empty(load("settled-bet"), named)
    amount = next(f["type"] for f in load("settled-bet")["fields"] if f["name"] == "amount")
    datum["amount"] = {**_empty([x for x in amount if x != "null"], named), "currency": currency}
    return codec.encode(datum)


def _empty(schema: Any, named: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return None if "null" in schema else _empty(schema[0], named)
    if isinstance(schema, str):
        if schema in named:
            return _empty(named[schema], named)
        return {"string": "", "long": 0, "int": 0, "boolean": False, "bytes": b"", "double": 0.0}.get(schema)
    match schema["type"]:
        case "record":
            named[schema["name"]] = schema
            return {f["name"]: _empty(f["type"], named) for f in schema["fields"]}
        case "array":
            return []
        case "map":
            return {}
        case "enum":
            return schema["symbols"][0]
        case other:
            return _empty(other, named)


def test_older_bets_are_read_when_names_are_kept_for_longer(bets: Bets) -> None:
    """Or a full run takes their currencies, leagues and events for unused, and removes them."""
    bets.messages = [Message(0, bet_bytes(), NOW - 20 * DAY), Message(1, bet_bytes(), NOW - DAY)]
    state = JobState("currencies", {})
    learn(state, settings(keep_days=5))
    assert bets.read == [1]
    learn(state, settings(keep_days=30))
    assert 0 in bets.read


def test_bets_whose_schema_the_registry_does_not_know_are_read_when_it_does(bets: Bets) -> None:
    """It was lost, or is another: what they mention must not stay unasked for ever."""
    bets.messages = [Message(0, bet_bytes(1))]
    state = JobState("currencies", {})
    learn(state, settings())
    bets.messages += [Message(1, bet_bytes(7)), Message(2, bet_bytes(7))]
    with suppress(SchemaError):  # it may end the run, or wait: not pass over them for good
        learn(state, settings())
    assert state.position == {0: 1}


def test_a_bet_without_a_time_does_not_end_all_runs(bets: Bets) -> None:
    """It counts as of 1970."""
    bets.messages = [Message(0, bet_bytes(), -0.001)]
    state = JobState("currencies", {})
    learn(state, settings())
    state.in_use()


async def test_leagues_by_sport_are_listed_without_a_right_to_the_sports() -> None:
    """Bets say which sports there are."""
    chosen = api(query={"leagues": {"sport": "{sportId}"}})
    provider = Provider(forbidden={"sports"})
    await translate(provider, Topic(), mention(WORLD.events[0]), settings=chosen)
    assert provider.asked()["leagues"] > 0


def test_foreign_records_after_all_bets_do_not_end_the_job(bets: Bets) -> None:
    """Bets that mention nothing for the job were there: the topic is the right one."""
    bets.messages = [Message(0, bet_bytes())]
    state = JobState("translations", {})
    JobStorage(settings(), "translations").learn(state, NOW, lambda: None)  # it has no selections
    bets.messages.append(Message(1, b"junk"))
    JobStorage(settings(), "translations").learn(state, NOW, lambda: None)


class Died(Exception):
    """The process did."""


@pytest.mark.parametrize("saves", [0, 1, 2, 3])
def test_a_run_that_dies_while_it_learns_goes_on_from_what_it_saved(
    bets: Bets, monkeypatch: pytest.MonkeyPatch, saves: int
) -> None:
    """And knows in the end what a run that did not die knows, hours and order included."""
    monkeypatch.setattr(storage, "LEARNT_AT_ONCE", 2)
    bets.messages = [Message(n, bet_bytes(currency=f"C{n % 4}"), NOW - 3600 * (7 - n)) for n in range(7)]
    kept: dict[bytes, bytes] = {}
    done = 0

    def save() -> None:
        nonlocal done
        if done == saves:
            raise Died
        done += 1
        for key, value in state.changes().items():
            assert value is not None
            kept[key] = value

    state = JobState("currencies", {})
    with pytest.raises(Died):
        JobStorage(settings(), "currencies").learn(state, NOW, save)
    assert state.changes() or saves == 0  # the death was in the middle
    bets.read.clear()
    state = JobState("currencies", kept)
    learn(state, settings())
    assert bets.read == [*range(2 * saves, 7)]
    whole = JobState("currencies", {})
    learn(whole, settings())
    assert state.in_use().currencies == whole.in_use().currencies == {"C0", "C1", "C2", "C3"}
    assert state.references(NOW - 3600 * 2, full=True) == whole.references(NOW - 3600 * 2, full=True)
    assert state.newest == whole.newest
