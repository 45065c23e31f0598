"""Takes screenshots of the status page: those of `docs/images`, or all of them into a given directory."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import NamedTuple

from bridge.observability.status import StatusSnapshot
from bridge.observability.status_page import status_page
from tests.browser import CHROMIUM, browser
from tests.shown import LIVE, STATES, clock, decode, serving

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
)
"""Those that the documentation shows."""


def take(shots: Iterable[Shot], directory: Path) -> None:
    """Take screenshots into a directory."""
    status: StatusSnapshot = LIVE
    directory.mkdir(parents=True, exist_ok=True)
    with serving(status_page(lambda: status, clock, decode), lambda: status) as server, browser() as tab:
        for shot in shots:
            status = STATES[shot.state]
            tab.look(shot.width, HEIGHT, dark=shot.dark)
            tab.open(server.url)
            (directory / shot.file).write_bytes(tab.screenshot())


if __name__ == "__main__":
    if CHROMIUM is None:
        sys.exit("error: chromium is required; on Debian: apt-get install chromium")
    if len(sys.argv) > 1:
        take((Shot(*of) for of in product(STATES, (390, 1440), (False, True))), Path(sys.argv[1]))
    else:
        take(SHOWN, IMAGES)
