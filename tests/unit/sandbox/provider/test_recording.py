"""Recorded bets: when each is published, how it is moved to now, and what is wrong with a file."""

from __future__ import annotations

from itertools import pairwise
from math import inf, nextafter
from pathlib import Path
from typing import Any

import fastavro
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.avro.schemas import load
from bridge.messages.model import parse_date_time
from bridge_sandbox.provider.avro_files import RecordingError, date_time
from bridge_sandbox.provider.faults import Clear, ClockJump, Surge
from bridge_sandbox.provider.feed import NotRecorded, Provider
from bridge_sandbox.provider.rate_limits import Limits
from bridge_sandbox.provider.recording import Bets, Recording, Speed, Step, publication_times
from bridge_sandbox.provider.settings import SimulatorSettings
from bridge_sandbox.provider.stream import Stream
from bridge_sandbox.provider.world.entities import World
from tests.recordings import BEGIN, SECOND, bet, write
from tests.unit.sandbox.provider.consumer import NOW, bets, let_in, received

NOT_SET = -62135596800 * SECOND
EACH_SECOND = [bet(second, second) for second in range(100)]


@pytest.fixture
def recorded(tmp_path: Path) -> Bets:
    """A hundred bets, one a second."""
    return Bets([write(tmp_path / "bets.avro", EACH_SECOND, block=1_000)])


def playing(world: World, recorded: Bets, speed: float = 1, **options: Any) -> Provider:
    return Provider(Recording(world, NOW, recorded, speed, **options), Limits())


def numbers(frames: list[bytes]) -> list[int]:
    return [int(orjson.loads(frame)["data"]["betId"][1:]) for frame in bets(frames)]


def seconds(of: list[float]) -> list[int]:
    return [round(second * SECOND) for second in of]


@pytest.mark.parametrize(
    ("settled", "published"),
    [
        ([0, 1, 2], [0, 1, 2]),
        ([0, 5, 3, 4, 6], [0, 5, 5, 5, 6]),  # late ones keep their place
        ([10, -7200, 11], [10, 10, 11]),
        ([NOT_SET / 1e6, 1, 2, 3], [2, 2, 2, 3]),  # the first has no time: that of those after it
        ([-7200, 1, 2, 3], [2, 2, 2, 3]),
        ([-1800, 1, 2, 3], [-1800, 1, 2, 3]),  # a quiet night
        ([0, 1, 70_000_000, 2, 3, 4], [0, 1, 1, 2, 3, 4]),  # a broken clock
        ([0, 1, 2, 3, 70_000, 70_001], [0, 1, 2, 3, 70_000, 70_001]),  # nothing for most of a day
        ([5], [5]),
    ],
)
def test_a_bet_is_published_when_it_and_all_before_it_were_settled(
    settled: list[float], published: list[float]
) -> None:
    assert list(publication_times(seconds(settled))) == seconds(published)


def test_the_recording_begins_with_the_first_client_and_a_replay_repeats_it(
    world: World, recorded: Bets
) -> None:
    feed = playing(world, recorded)
    assert feed.log.count(NOW + 50) == 0
    first = let_in(feed, NOW + 50, None)
    assert numbers(received(first, NOW + 50, NOW + 59.5)) == [*range(10)]
    feed.disconnect(first)
    again = let_in(feed, NOW + 60.5, int(NOW) + 57)
    assert numbers(received(again, NOW + 60.5, NOW + 1000)) == [*range(7, 100)]
    assert feed.recording
    assert round(feed.recording.ends, 3) == NOW + 149
    assert received(again, NOW + 1000, NOW + 1100)[0].startswith(b'{"pingId"')


def test_a_recording_with_a_history_has_begun_already(world: World, recorded: Bets) -> None:
    feed = playing(world, recorded, speed=10, waits=False)
    late = let_in(feed, NOW + 5.05, int(NOW))
    assert numbers(received(late, NOW + 5.05, NOW + 5.05)) == [*range(51)]


def test_a_bet_is_moved_to_now_as_a_whole(world: World, tmp_path: Path) -> None:
    """At any speed it stays as late as it came; what means "not set" is not moved."""
    item = {
        **dict.fromkeys(["selectionId", "competitionId", "countryId", "sportId", "version"], 1),
        **dict.fromkeys(["hasLineDeviation", "isOutright"], False),
        "limitsFactor": 1.0,
        "type": "Standard",
    }
    starts = [BEGIN - 3600 * SECOND, NOT_SET, None]
    selections = [item | {"event": {"id": 1, "isLive": False, "startTime": start}} for start in starts]
    late = bet(1.5, 2, selections=selections)
    path = write(tmp_path / "bets.avro", [bet(0), bet(20), late, bet(40)])
    recording = Recording(world, NOW, Bets([path]), speed=10, waits=False)
    recording.clock.step(NOW, 1000)
    message = recording.message(2)
    data = orjson.loads(message.body)["data"]
    times = [data["settlementTime"], *(item["event"]["startTime"] for item in data["selections"])]
    published = NOW + 2
    assert message.at == published
    assert times[2:] == ["0001-01-01T00:00:00Z", None]
    moved = [parse_date_time(time) / SECOND - published - 1000 for time in times[:2]]
    assert moved == pytest.approx([-18.5, -3620], abs=1e-5)
    assert parse_date_time(times[0]) <= (published + 1000 - 18.5) * SECOND


def test_nothing_is_settled_after_it_was_published(world: World, recorded: Bets) -> None:
    for speed in (0.3, 1, 7, inf):
        recording = Recording(world, NOW + 0.123457, recorded, speed, waits=False)
        for slot in range(100):
            message = recording.message(slot)
            settled = parse_date_time(orjson.loads(message.body)["data"]["settlementTime"])
            assert message.at * SECOND - 3 < settled <= message.at * SECOND


def test_times_may_be_kept(world: World, recorded: Bets) -> None:
    recording = Recording(world, NOW, recorded, keep_times=True, waits=False)
    recording.clock.step(NOW, 1000)
    sent = [orjson.loads(recording.message(slot).body)["data"]["settlementTime"] for slot in range(100)]
    assert [parse_date_time(time) for time in sent] == [each["settlementTime"] for each in EACH_SECOND]


COMMANDS = st.one_of(
    st.builds(Speed, speed=st.sampled_from([0.0, 0.5, 1.0, 20.0, inf])),
    st.builds(Step, count=st.integers(1, 30)),
    st.builds(Surge, per_second=st.sampled_from([0.5, 50.0]), seconds=st.sampled_from([None, 0.0, 3.0])),
    st.just(Clear()),
    st.just(ClockJump(by=100)),
)


@given(commands=st.lists(st.tuples(st.floats(0, 20), COMMANDS), max_size=6), waits=st.booleans())
def test_no_command_changes_what_was_published(
    tmp_path_factory: pytest.TempPathFactory,
    world: World,
    commands: list[tuple[float, Any]],
    waits: bool,
) -> None:
    recorded = Bets([write(tmp_path_factory.mktemp("bets") / "bets.avro", EACH_SECOND)])
    feed, now = playing(world, recorded, waits=waits), NOW
    stream = feed.log.stream
    for wait, command in commands:
        now += wait
        before = [stream.message(slot) for slot in range(stream.first_slot(nextafter(now, inf)))]
        feed.play(command, now) if isinstance(command, Speed | Step) else feed.inflict(command, now)
        assert [stream.message(slot) for slot in range(len(before))] == before
        times = [stream.at(slot) for slot in range(101)]
        assert all(first <= second for first, second in pairwise(times))
        assert times[-1] == inf
        assert all(time > now for time in times[len(before) :])


def test_a_recording_goes_on_as_commanded(world: World, recorded: Bets) -> None:
    feed = playing(world, recorded, speed=0)
    client = let_in(feed, NOW, None)
    assert numbers(received(client, NOW, NOW + 30)) == []
    feed.play(Step(count=3), NOW + 30)
    assert numbers(received(client, NOW + 30, NOW + 60)) == [0, 1, 2]
    feed.play(Speed(speed=10), NOW + 60)
    feed.inflict(Clear(), NOW + 60.02)  # of nothing
    assert numbers(received(client, NOW + 60, NOW + 61.05)) == [*range(3, 14)]
    feed.inflict(Surge(per_second=2), NOW + 61.05)
    assert numbers(received(client, NOW + 61.05, NOW + 63.1)) == [14, 15, 16, 17, 18]
    feed.inflict(Clear(), NOW + 63.1)
    assert numbers(received(client, NOW + 63.1, NOW + 64.05)) == [*range(19, 29)]
    feed.play(Step(count=2), NOW + 64.06)
    assert numbers(received(client, NOW + 64.06, NOW + 65)) == [29, 30]
    assert feed.log.stream.state()["recording"] == {"bets": 100, "speed": 0, "ends": inf}
    feed.play(Speed(speed=inf), NOW + 65)
    assert numbers(received(client, NOW + 65, NOW + 65.1)) == [*range(31, 100)]


def test_bets_that_are_made_take_no_command(stream: Stream) -> None:
    with pytest.raises(NotRecorded, match=r"start with --bets FILE\.avro"):
        Provider(stream, Limits()).play(Step(), NOW)


def test_files_are_merged_in_order_of_publication(world: World, tmp_path: Path) -> None:
    write(tmp_path / "2.avro", [bet(second, second) for second in range(50, 99)])
    write(tmp_path / "1.avro", [bet(second, second) for second in range(0, 50, 2)], codec="deflate")
    odd = write(tmp_path / "odd", [bet(second, second) for second in range(1, 50, 2)])
    write(tmp_path / "3.avro", [])
    recorded = Bets([odd, tmp_path])
    sent = [recorded.as_sent(place, 0)["betId"] for place in range(99)]
    assert sent == [f"b{number}" for number in range(99)]
    assert str(recorded) == "99 bets, recorded from 2023-11-14T22:13:20Z to 2023-11-14T22:14:58Z"


@pytest.mark.parametrize(
    "micros", [NOT_SET, NOT_SET - 14 * 3600 * SECOND, 253402300799999999 + 14 * 3600 * SECOND, 0, -1]
)
def test_a_date_time_of_any_year_of_the_feed_comes_again(micros: int) -> None:
    assert parse_date_time(date_time(micros)) == micros


def test_what_is_no_date_time_stays_a_number() -> None:
    assert date_time(2**62) == 2**62


def _cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def _lower_the_count_of_a_block(path: Path) -> None:
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        content[next(iter(fastavro.block_reader(file))).offset] -= 2
    path.write_bytes(content)


TIMELESS = {
    "type": "record",
    "name": "settlement.SettledBet",
    "fields": [{"name": "betId", "type": "string"}],
}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "FILE cannot be read: No such file or directory"),
        (lambda path: path.write_bytes(b""), "FILE does not begin as an Avro object container file"),
        (lambda path: path.write_text("{}\n"), "FILE does not begin as an Avro object container file"),
        (lambda path: write(path, [], load("currency")), "FILE has records of settlement.Currency, not of "),
        (lambda path: write(path, [], "string"), "FILE has records of string, not of settlement.SettledBet"),
        (lambda path: write(path, []), "there is no bet in FILE"),
        (lambda path: write(path, [{"betId": "b"}], TIMELESS), "FILE has bets without a settlementTime"),
        (lambda path: (path.unlink(), path.mkdir()), "there is no *.avro in FILE"),
        (lambda path: _cut(path, -1), "FILE is damaged at byte "),
        (lambda path: _cut(path, -2000), "FILE is damaged at byte "),
        (_lower_the_count_of_a_block, "FILE is damaged at byte "),
    ],
)
def test_a_wrong_file_is_named_at_once(tmp_path: Path, damage: Any, message: str) -> None:
    path = write(tmp_path / "bets.avro", EACH_SECOND, block=1_000)
    damage(path)
    with pytest.raises(RecordingError) as caught:
        Bets([path])
    assert str(caught.value).startswith(message.replace("FILE", str(path)))


@given(
    place=st.integers(0, 10**6),
    junk=st.binary(min_size=1, max_size=8),
    codec=st.sampled_from(["null", "deflate"]),
)
def test_damage_raises_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, place: int, junk: bytes, codec: str
) -> None:
    path = write(tmp_path_factory.mktemp("bets") / "bets.avro", EACH_SECOND[:20], codec=codec, block=500)
    content = path.read_bytes()
    place %= len(content)
    path.write_bytes(content[:place] + junk + content[place + len(junk) :])
    try:
        recorded = Bets([path])
    except RecordingError:
        return
    for slot in range(len(recorded.times)):
        orjson.dumps(recorded.as_sent(slot, 0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bets": ["x"], "rate": 5}, "rate: not for recorded bets"),
        ({"speed": 5}, "speed: only for recorded bets"),
        ({"keep_times": True}, "keep_times: only for recorded bets"),
        ({"bets": ["x"], "speed": -1}, "greater than or equal to 0"),
        ({"bets": ["x"], "speed": "nan"}, "greater than or equal to 0"),
    ],
)
def test_settings_are_of_bets_that_are_made_or_recorded(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimulatorSettings(**settings)


def test_the_speed_may_be_at_once() -> None:
    assert SimulatorSettings(bets=["x"], speed="max").speed == inf
