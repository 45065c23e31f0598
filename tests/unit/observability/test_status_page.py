"""The status page and its stream, as the server calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from itertools import islice
from threading import Event, Semaphore
from typing import Any
from urllib.request import urlopen

import orjson
import pytest

from bridge.observability.endpoints import Page
from bridge.observability.http_server import WsgiServer
from bridge.observability.status import StatusSnapshot
from bridge.records.dead_letter import DeadLetterCause
from tests import screenshots, shown, wsgi
from tests.shown import LIVE, NOW, SHOWING_BETS, STANDBY, STATES, application, serving
from tests.snapshots import replace


def pages(take: Callable[[], StatusSnapshot], streams: int = 1) -> Mapping[str, Page]:
    return shown.pages(take, streams=streams, sleep=lambda _: None)


def ask(path: str, status: StatusSnapshot = LIVE, method: str = "GET") -> wsgi.Response:
    return wsgi.ask(application(pages(lambda: status), lambda: status), path, method)


def stream(found: Mapping[str, Page]) -> Iterator[bytes]:
    body = found["/events"]("").body
    assert not isinstance(body, bytes)
    return body


def changed(message: bytes) -> dict[str, str]:
    found: dict[str, str] = orjson.loads(message.rpartition(b"data: ")[2])
    return found


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", STATES)
def test_the_page_is_whole_in_each_state(name: str) -> None:
    response = ask("/", STATES[name])
    assert response.status == "200 OK"
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    elements = Elements(response.body.decode()).found
    assert not [tag for tag, has in elements if tag == "style" or "style" in has]
    assert not [has for _, has in elements if any(name.startswith("on") for name in has)]
    assert [has["src"] for tag, has in elements if tag == "script"] == ["page.js"]
    addresses = {has.get("href") or has.get("src") for _, has in elements} - {None}
    assert addresses == {"page.svg", "page.css", "page.js", "healthz", "readyz", "metrics"}
    for address in addresses if name == "live" else ():
        assert ask(f"/{address}", STATES[name]).status == "200 OK"


def test_foreign_text_is_escaped() -> None:
    bad = "<script>alert('x')</script>"
    status = replace(LIVE, reason=bad, dead_letters={DeadLetterCause("data." + bad, bad): 1})
    body = ask("/", status).body.decode()
    assert "<script>a" not in body
    assert body.count("&lt;script&gt;alert") == 3
    assert "<script>a" not in "".join(changed(next(stream(pages(lambda: status)))).values())


def test_text_that_is_no_unicode_is_shown_all_the_same() -> None:
    status = replace(LIVE, dead_letters={DeadLetterCause("data.\ud800", "bad \udfff"): 1})
    assert b"data.<wbr>?" in ask("/", status).body
    assert "bad ?" in changed(next(stream(pages(lambda: status))))["letters"]


def test_the_stream_names_elements_of_the_page() -> None:
    body = ask("/").body.decode()
    ids = [has["id"] for _, has in Elements(body).found if "id" in has]
    sent = changed(next(stream(pages(lambda: LIVE))))
    assert len(ids) == len(set(ids))
    assert sent.keys() <= set(ids)
    assert all(text in body for text in sent.values())
    assert {"state", "why", "notices", "line", "limits", "letters", "members"} < sent.keys()


def test_the_stream_then_sends_what_has_changed() -> None:
    taken = iter([LIVE, LIVE, replace(LIVE, reason="because")])
    first, second, third = map(changed, islice(stream(pages(lambda: next(taken))), 3))
    assert len(first) > 10
    assert second == {}
    assert third.keys() == {"why"}


def test_a_stream_ends() -> None:
    found = pages(lambda: LIVE)
    messages = list(stream(found))
    assert len(messages) == 300
    assert changed(next(stream(found))) == changed(messages[0])


def test_a_browser_without_a_stream_gets_one_message_and_asks_again() -> None:
    found = pages(lambda: LIVE, streams=1)
    held = stream(found)
    next(held)
    surplus = list(stream(found))
    assert len(surplus) == 1
    assert surplus[0].startswith(b"retry: 5000\n")
    assert len(changed(surplus[0])) > 10
    held.close()  # type: ignore[attr-defined]  # as the server does when the client is gone
    assert not next(stream(found)).startswith(b"retry")


def test_a_stream_that_nobody_reads_takes_no_place() -> None:
    found = pages(lambda: LIVE, streams=1)
    found["/events"]("")
    assert not next(stream(found)).startswith(b"retry")
    response = ask("/events", method="HEAD")
    assert (response.status, response.headers["Content-Type"], response.body) == (
        "200 OK",
        "text/event-stream",
        b"",
    )
    assert "Content-Length" not in response.headers


def open_stream(server: WsgiServer) -> HTTPResponse:
    client = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    client.request("GET", "/events")
    return client.getresponse()


def test_streams_leave_connections_to_scrapers() -> None:
    end = Event()
    found = shown.pages(lambda: LIVE, streams=2, sleep=lambda _: end.wait(30))
    with serving(found, lambda: LIVE, connections=4) as server:
        first = [open_stream(server).readline()[:5] for _ in range(6)]
        assert first == [b"data:"] * 2 + [b"retry"] * 4
        statuses = list[int]()
        while not statuses:  # those that were sent away may still be leaving
            with suppress(RemoteDisconnected), urlopen(f"{server.url}/metrics", timeout=30) as response:
                statuses.append(response.status)
        assert statuses == [200]
        end.set()


def test_a_browser_that_leaves_frees_its_stream(capfd: pytest.CaptureFixture[str]) -> None:
    turn = Semaphore(0)
    found = shown.pages(lambda: LIVE, streams=1, sleep=lambda _: turn.acquire())
    with serving(found, lambda: LIVE, connections=4) as server:
        left = open_stream(server)
        left.readline()
        left.close()
        kinds = []
        for _ in range(100):
            turn.release()
            with open_stream(server) as response:
                kinds.append(response.readline()[:5])
            if kinds[-1] == b"data:":
                break
        turn.release(300)
    assert kinds[-1] == b"data:"
    assert capfd.readouterr() == ("", "")


def test_a_standby_shows_nothing_of_the_feed() -> None:
    assert "a second" not in ask("/", STANDBY).body.decode()


def test_a_live_region_does_not_speak_each_second() -> None:
    earlier, later = STATES["loop-dead"], replace(STATES["loop-dead"], at=NOW - 96)
    one, two = (changed(next(stream(pages(lambda: earlier)))), changed(next(stream(pages(lambda: later)))))
    assert one["since"] != two["since"]
    live = {has.get("id") for _, has in Elements(ask("/").body.decode()).found if "role" in has} - {None}
    assert live == {"state", "notices", "lost"}
    assert all(one[name] == two[name] for name in ("state", "notices"))


def test_bets_appear_once_a_standby_owns_the_feed() -> None:
    taken = iter([STANDBY, SHOWING_BETS])
    before, after = map(changed, islice(stream(pages(lambda: next(taken))), 2))
    assert before["bets"].strip() == ""
    assert "Northgate Rovers" in after["bets"]
    assert "Northgate Rovers" not in ask("/").body.decode()


def test_the_screenshots_show_the_page_as_it_is() -> None:
    assert orjson.loads(screenshots.RENDERED.read_bytes()) == screenshots.digests()
