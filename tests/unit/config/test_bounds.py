"""Numbers at the ends of their types are refused by name, or everything derived from them works."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from confluent_kafka.admin import NewTopic
from pydantic import BaseModel

from bridge import config
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load as load_schema
from bridge.config import Settings, age_seconds, load, parse_start
from bridge.doctor.feed_checks import assess_checkpoint
from bridge.errors import SettingsError
from bridge.feed.rate_limits import Attempt
from bridge.inspection.limits import LimitForecast, forecast_as_json, forecast_as_lines, parse_moment
from bridge.inspection.replay import parse_window
from bridge.kafka import clients
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.rest.pacing import Pace
from tests.unit.config.given import toml

INT32, INT64 = 2**31, 2**63
ENDS: list[float] = [
    *(0, -1, 1, math.nan, math.inf, -math.inf, sys.float_info.min, -sys.float_info.max, sys.float_info.max),
    *(1e300, INT32 - 1, INT32, -INT32, -INT32 - 1, INT64 - 1, INT64, -INT64, -INT64 - 1, 10**400),
]
"""Of their types, and beyond."""
NOW = 1_790_000_000.0
DAY_SECONDS = 86_400
LEDGER = tuple(Attempt(NOW - 60 * n, 60 * n, n == 9, NOW - 60 * n, own=False) for n in range(10, 0, -1))
LAST = Checkpoint("f", int(NOW) - 30, State.LIVE, LEDGER, Counters(), NOW, "me")


def numeric() -> Iterator[tuple[str, str, bool]]:
    """Yield section, name, and whether it is a collection, of each setting with numbers."""
    for section, field in Settings.model_fields.items():
        model = field.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        for name, inner in model.model_fields.items():
            if kinds := {*leaves(inner.annotation)} & {int, float}:
                assert len(kinds) == 1
                yield section, name, get_origin(inner.annotation) in (frozenset, tuple, list)


def leaves(annotation: Any) -> Iterator[Any]:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from leaves(parts[0])
    elif origin in (Union, types.UnionType, frozenset, tuple, list, dict):
        for part in parts:
            yield from leaves(part)
    else:
        yield annotation


@pytest.mark.parametrize(("section", "name", "several"), [*numeric()])
def test_a_number_works_or_is_refused_by_name(
    section: str, name: str, several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the file; and those that are large, in the environment."""
    wrong = []
    for number in ENDS:
        text = f"[{number!r}]" if several else repr(number)
        file: Path | None = toml(tmp_path, f"[{section}]\n{name} = {text}\n")
        monkeypatch.delenv(variable := config.env_name(section, name), raising=False)
        if abs(number) >= INT64:
            monkeypatch.setenv(variable, text)
            file = None
        try:
            works(load(file))
        except SettingsError as error:
            if name not in str(error).lower():
                wrong.append(f"{text[:30]}: not named: {error}")
        except Exception as error:  # noqa: BLE001  # any error is reported with the number
            wrong.append(f"{text[:30]}: {error!r}")
    assert wrong == []


def works(settings: Settings) -> None:
    declared_topics_can_be_made(settings)
    limits_can_be_kept(settings)
    snapshots_can_be_timed(settings)
    asyncio.run(waits_can_be_waited(settings))


def declared_topics_can_be_made(settings: Settings) -> None:
    for topic in topics.declare(settings).all():
        copies = settings.topics.replication_factor or 3
        shape = topics.as_created(topic, copies)
        NewTopic(topic.name, topic.partitions, copies, config=shape)
        assert topic.partitions <= 10_000, "no broker makes more at once"
        assert int(shape.get("max.message.bytes", "1")) < INT32
        assert int(shape.get("min.compaction.lag.ms", "0")) < INT64
    largest = topics.max_record_bytes(settings.feed)
    clients.producer(settings.kafka, transactional_id="t", max_record_bytes=largest)


def limits_can_be_kept(settings: Settings) -> None:
    codec = Codec(load_schema("feed-checkpoint"), READ_ONLY)
    for at in (NOW, NOW + 1):
        for revision in (0, LAST.revision, int(NOW - settings.limits.memory_seconds)):
            result = LimitForecast(settings, LAST, at, revision)
            assert at <= result.reconnect.until < math.inf
            forecast_as_json(result)
            forecast_as_lines(result)
            waiting = replace(LAST, revision=revision, until=result.reconnect.until)
            codec.encode(waiting.to_avro())
            assess_checkpoint(settings, waiting, at)


def snapshots_can_be_timed(settings: Settings) -> None:
    api = settings.api
    for days in (api.recent_days, api.keep_days):
        assert -INT64 < round((NOW - days * DAY_SECONDS) * 1000) <= NOW * 1000
    assert 0 < api.refresh_hours * 3600 < math.inf
    pace = Pace(api.requests_per_second)
    pace.sent(NOW)
    pace.refused(NOW, NOW)
    assert pace.left(NOW) < math.inf


async def waits_can_be_waited(settings: Settings) -> None:
    """Wait as the event loop and the libraries do, for something that is there at once."""
    feed, api = settings.feed, settings.api
    for seconds in (feed.idle_timeout_seconds, feed.connect_timeout_seconds, api.timeout_seconds):
        asyncio.get_running_loop().call_later(seconds, print).cancel()
        async with asyncio.timeout(max(seconds, 1)):
            await asyncio.sleep(0)


AGES = ["999999999d", "999999999999d", "36501d", f"{'9' * 5_000}d", f"{'9' * 5_000}s"]
MOMENTS = ["0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"]


@pytest.mark.parametrize("age", AGES)
def test_an_age_that_nothing_has_is_refused(age: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_FEED__START", age)
    for read in (
        lambda: age_seconds(age),
        lambda: parse_moment(f"+{age}", NOW),
        lambda: parse_window(age, None, NOW),
        lambda: parse_window(None, age, NOW),
        load,
    ):
        with pytest.raises(SettingsError) as caught:
            read()
        assert len(str(caught.value)) < 500


def test_the_longest_age_and_the_last_moments_work() -> None:
    """An age of a hundred years is before 1970, where Kafka's time begins."""
    longest = age_seconds("36500d")
    threading.Event().wait(-longest)
    assert longest < threading.TIMEOUT_MAX
    assert parse_window("36500d", None, NOW).begin == 0
    for moment in MOMENTS:
        at = parse_moment(moment, NOW)
        for revision in (LAST.revision, math.ceil(at) - longest):
            result = LimitForecast(Settings(), LAST, at, revision)
            assert forecast_as_json(result)
            assert forecast_as_lines(result)
    assert parse_window(None, MOMENTS[-1], NOW).end == 253_402_351_199_000


def test_a_start_is_within_memory_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for moment in MOMENTS:
        monkeypatch.setenv("BRIDGE_FEED__START", moment)
        if moment.startswith("9999"):
            with pytest.raises(SettingsError, match=r"\(BRIDGE_FEED__START\) = 9999-.* is in the future"):
                load()
        else:
            assert parse_start(load().feed.start, NOW) == int(parse_moment(moment, NOW))
