"""A process ends if its event loop stands still, but not if all of it does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from bridge.errors import TopologyError
from bridge.service import pulse
from bridge.service.pulse import Pulse


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred times as fast."""
    for name in ("SILENT_SECONDS", "ENDING_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(pulse, name, getattr(pulse, name) / 100)


class Ended:
    """The end of a process, which does not end."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.happened = threading.Condition()

    def __call__(self, code: int) -> None:
        with self.happened:
            self.codes.append(code)
            self.happened.notify_all()

    def wait(self) -> list[int]:
        with self.happened:
            self.happened.wait_for(lambda: self.codes, 20)
        return self.codes


def ended(prepare: Callable[[Pulse], object] = lambda _: None) -> tuple[list[int], list[str]]:
    """The exit codes and the order of what happened to a process whose loop does not beat."""
    end, order = Ended(), list[str]()
    watched = Pulse(end)
    watched.leave = lambda: order.append("left")
    watched.tell = lambda error: order.append(str(error))
    prepare(watched)
    with watched.watched(), capture_logs() as logged:
        codes = end.wait()
    return codes, [*(line["event"] for line in logged), *order]


def test_a_loop_that_stands_still_leaves_the_group_and_ends_with_an_error() -> None:
    assert ended() == ([1], ["the event loop stands still, ending the process", "left"])


def test_where_all_is_done_and_only_a_thread_hangs_it_ends_as_it_would() -> None:
    def done(watched: Pulse) -> None:
        watched.asked_to_end()
        watched.done = True

    def failed(watched: Pulse) -> None:
        watched.error, watched.done = TopologyError("no such topic"), True

    assert ended(done) == ([0], [])
    assert ended(failed) == ([6], ["no such topic"])


async def test_a_loop_that_beats_lives() -> None:
    end = Ended()
    watched = Pulse(end)
    with watched.watched():
        for _ in range(100):
            watched.beat()
            await asyncio.sleep(0.004)
    assert end.codes == []
