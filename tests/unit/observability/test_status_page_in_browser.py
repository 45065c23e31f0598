"""The status page as a person sees, hears and operates it: in headless Chromium, where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.observability.status import StatusSnapshot
from bridge.observability.view import View
from bridge.snapshots.view import JobView
from tests.browser import Tab, browser
from tests.shown import CATCHING_UP, GAP, LIVE, NOW, STANDBY, STATES, pages, serving, show
from tests.snapshots import replace
from tests.unit.snapshots import reports
from tests.unit.snapshots.reports import JOBS, LATER

pytestmark = pytest.mark.long


class Shown:
    """A page in the browser, such as that of a bridge whose status a test changes."""

    def __init__(self, tab: Tab, url: str = "") -> None:
        self.tab = tab
        self.status: StatusSnapshot = LIVE
        self.url = url

    def take(self) -> StatusSnapshot:
        return self.status

    def text(self, identifier: str) -> str:
        found: str = self.tab.evaluate(f"document.getElementById('{identifier}').innerText")
        return found


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


@pytest.fixture
def shown(tab: Tab) -> Iterator[Shown]:
    page = Shown(tab)
    with serving(pages(page.take), page.take) as server:
        page.url = server.url
        tab.look(1440, 900)
        tab.open(page.url)
        tab.messages.clear()
        yield page
        tab.open("about:blank")


CONTRAST = """(() => {
    const rgb = color => color.match(/[\\d.]+/g).map(Number);
    const light = color => {
        const [r, g, b] = rgb(color).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    const behind = node => {
        for (; node; node = node.parentElement) {
            const color = getComputedStyle(node).backgroundColor;
            if (rgb(color)[3] !== 0) return color;
        }
    };
    const speaks = node => [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    const texts = [...document.body.querySelectorAll('*')].filter(n => n.checkVisibility() && speaks(n));
    const faded = node => node !== null && (getComputedStyle(node).opacity < 1 || faded(node.parentElement));
    const ratio = node => {
        if (faded(node)) return 1; // whatever it is: a text is not to be seen through
        const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort((x, y) => y - x);
        return (a + .05) / (b + .05);
    };
    return Math.min(...texts.map(ratio));
})()"""
"""The lowest contrast of a text and what is behind it, as WCAG computes it."""


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", STATES)
def test_each_state_is_readable(shown: Shown, name: str, width: int) -> None:
    shown.status = STATES[name]
    is_readable(shown, width, View(STATES[name], NOW, show).headline.sentence)


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", JOBS)
def test_each_state_of_a_snapshot_job_is_readable(tab: Tab, name: str, width: int) -> None:
    with serving(reports.pages(JOBS[name]), lambda: LIVE) as server:
        is_readable(Shown(tab, server.url), width, JobView(JOBS[name], LATER).headline.sentence)
        tab.open("about:blank")


def is_readable(shown: Shown, width: int, sentence: str) -> None:
    """It fits the width, in a dark scheme and a light one, and the browser complains of nothing."""
    shown.tab.messages.clear()
    for dark in (False, True):
        shown.tab.look(width, 800, dark=dark)
        shown.tab.open(shown.url)
        assert shown.text("state") == sentence
        assert shown.tab.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.tab.evaluate(CONTRAST) >= 4.5
    assert shown.tab.messages == []


def test_the_page_follows_the_bridge(shown: Shown) -> None:
    shown.tab.evaluate("window.mine = 1")
    shown.status = replace(GAP, reason="<b>no markup</b>")
    shown.tab.wait("document.getElementById('notices').innerText.startsWith('1 gap declared')")
    assert "<b>no markup</b>" in shown.text("why")
    shown.status = STANDBY
    shown.tab.wait("document.getElementById('state').innerText.startsWith('Standing by')")
    assert shown.tab.evaluate("document.title").startswith("Standby")
    assert shown.tab.evaluate("window.mine") == 1
    assert shown.tab.messages == []


def test_the_page_says_when_it_hears_nothing(tab: Tab) -> None:
    later = "Date.now = (now => () => now() + 3600000)(Date.now)"
    unheard = "document.getElementById('lost').innerText.startsWith('No word from this process since')"
    page = pages(lambda: LIVE)
    with serving(page, lambda: LIVE) as server:
        tab.open(server.url)
        tab.wait("heard > 0 && source.readyState === EventSource.OPEN")
        tab.evaluate("source.close()")
        tab.evaluate(later)
        tab.evaluate("look()")
        assert tab.evaluate(unheard)
        assert tab.evaluate("document.body.className") == "lost"
        tab.wait("document.getElementById('lost').innerText === ''")
        assert tab.evaluate("document.body.className") == ""
        tab.open("about:blank")


def test_the_page_is_whole_without_javascript(shown: Shown) -> None:
    shown.tab.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        shown.tab.open(shown.url)
        assert shown.text("state").startswith("Live")
        assert "Reload the page" in shown.tab.evaluate("document.body.innerText")
    finally:
        shown.tab.ask("Emulation.setScriptExecutionDisabled", value=False)


def heard(tab: Tab) -> set[tuple[str, str]]:
    """What a screen reader finds on a page: the role and the name of each part."""
    nodes = tab.ask("Accessibility.getFullAXTree")["nodes"]
    return {(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]}


def test_a_screen_reader_finds_its_way(shown: Shown) -> None:
    shown.status = replace(GAP, dead_letters=CATCHING_UP.known.dead_letters)
    shown.tab.open(shown.url)
    found = heard(shown.tab)
    for title in ("Flow", "Position", "Provider limits", "Dead letters", "Owner and standbys"):
        assert {("heading", title), ("region", title)} <= found
    assert ("image", "The last 3d: the position at 100%, 1 gap") in found
    assert {name for role, name in found if role == "columnheader"} == {"Field", "Reason", "Count"}
    assert "status" in {role for role, _ in found}


def test_a_screen_reader_finds_its_way_on_the_page_of_a_job(tab: Tab) -> None:
    with serving(reports.pages(JOBS["job-partial"]), lambda: LIVE) as server:
        tab.open(server.url)
        found = heard(tab)
        tab.open("about:blank")
    for title in ("Last snapshot", "Coverage", "Left out", "Records"):
        assert {("heading", title), ("region", title)} <= found
    assert "status" in {role for role, _ in found}


def test_the_keyboard_reaches_every_link(shown: Shown) -> None:
    reached = []
    for _ in range(3):
        for kind in ("keyDown", "keyUp"):
            shown.tab.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.append(shown.tab.evaluate("document.activeElement.getAttribute('href')"))
        assert shown.tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert reached == ["healthz", "readyz", "metrics"]
