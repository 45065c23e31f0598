"""Takes screenshots of the status pages: those of `docs/images`, or all of them into a given directory."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

from bridge import RELEASE, __version__
from bridge.observability.endpoints import Page
from tests.browser import CHROMIUM, browser
from tests.shown import LIVE, STATES, pages, serving
from tests.unit.snapshots import reports
from tests.unit.snapshots.reports import JOBS

IMAGES = Path(__file__).parents[1] / "docs" / "images"
HEIGHT = 640
"""Of the window; the picture is as long as the page."""


class Shot(NamedTuple):
    """One picture: a state, the width in pixels, and the colour scheme."""

    state: str
    width: int
    dark: bool

    @property
    def file(self) -> str:
        """Its name."""
        return f"{self.state}-{self.width}-{'dark' if self.dark else 'light'}.png"


SHOWN = (
    Shot("catching-up", 1440, dark=False),
    Shot("waiting-for-limit", 1440, dark=True),
    Shot("gap", 390, dark=False),
    Shot("job-partial", 1440, dark=False),
)
"""Those that the documentation shows."""
RENDERED = IMAGES / "rendered.json"
"""What the pages were when the screenshots of the documentation were taken, as digests."""


def take(shots: Iterable[Shot], directory: Path) -> None:
    """Take screenshots into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    with browser() as tab:
        for shot in shots:
            tab.look(shot.width, HEIGHT, dark=shot.dark)
            with serving(_pages(shot.state), lambda: LIVE) as server:
                tab.open(server.url)
                (directory / shot.file).write_bytes(tab.screenshot())


def rendered(state: str) -> str:
    """Return a digest of the page of a state, with its style and its script; of any commit of a release."""
    of_state = _pages(state)
    bodies = [of_state[path]("").body for path in ("/", "/page.css", "/page.js", "/page.svg")]
    joined = b"\0".join(body for body in bodies if isinstance(body, bytes))
    return hashlib.sha256(joined.replace(__version__.encode(), RELEASE.encode())).hexdigest()


def digests() -> dict[str, str]:
    """Return those of all pages that the documentation shows."""
    return {shot.state: rendered(shot.state) for shot in SHOWN}


def _pages(state: str) -> Mapping[str, Page]:
    return reports.pages(JOBS[state]) if state in JOBS else pages(lambda: STATES[state])


if __name__ == "__main__":
    if CHROMIUM is None:
        sys.exit("error: chromium is required; on Debian: apt-get install chromium")
    if len(sys.argv) > 1:
        take((Shot(*of) for of in product([*STATES, *JOBS], (390, 1440), (False, True))), Path(sys.argv[1]))
    else:
        take(SHOWN, IMAGES)
        RENDERED.write_text(json.dumps(digests(), indent=2) + "\n")
