"""The table of clients in docs/reading.md: a row says what was seen of a client."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clients.odd import Bet
from clients.outcome import STOPS, Outcome
from clients.programs import Client, Setting

PAGE = Path(__file__).parents[1] / "docs" / "reading.md"
_BLOCK = re.compile(r"(?<=<!-- clients -->\n).*?(?=<!-- /clients -->)", re.DOTALL)
_HEAD = (
    "| client | aborted bets | committed offset | keys as Java's | codecs | new symbol | without a setting "
    "| what remains |\n" + "| --- " * 8 + "|\n"
)


@dataclass
class Findings:
    """What was seen of a client."""

    client: Client
    read: Outcome
    """With all its settings."""
    without: list[tuple[Setting, Outcome]] = field(default_factory=list)
    offset: str = "–"
    """Where its group has committed, against the end of the partition."""
    keys: list[tuple[Setting | None, int]] = field(default_factory=list)
    """How many of `KEYS` keys lie where Java's client puts them."""
    codecs: dict[str, Outcome] = field(default_factory=dict)

    def row(self, truth: Sequence[tuple[str, Bet | None]]) -> str:
        """Return its row of the table."""
        hides = [setting for setting, outcome in self.without if outcome.aborted() > self.read.aborted()]
        read, shown = self.read.rows, self.read.aborted()
        usual = list(self.read.wrong(truth))
        refused = [codec for codec, outcome in self.codecs.items() if list(outcome.wrong(truth)) != usual]
        others = [
            f"`{setting.code}`: {_worst(list(outcome.wrong(truth)))}"
            for setting, outcome in self.without
            if setting not in hides
        ]
        cells = [
            f"[{self.client.title}](../clients/{self.client.path})",
            f"**shown**: {shown}" if shown else f"`{hides[0].code}`" if hides else "hidden" if read else "–",
            self.offset,
            self._keys(),
            f"not {', '.join(refused)}" if refused else "all" if read else "–",
            self.read.symbol(),
            "; ".join(others) or "–",
            "; ".join(usual) or "–",
        ]
        return f"| {' | '.join(cells)} |\n"

    def _keys(self) -> str:
        if not self.keys:
            return "–"
        by = "; ".join(f"{count} of {KEYS}" + (f" without `{s.code}`" if s else "") for s, count in self.keys)
        return "yes" if self.keys == [(None, KEYS)] else by


def _worst(wrong: Sequence[str]) -> str:
    return next((words for words in wrong if words.startswith(STOPS)), wrong[0] if wrong else "nothing")


KEYS = 60


def rows(page: str) -> dict[str, str]:
    """Return the rows of a page by the path of the program."""
    block = _BLOCK.search(page)
    assert block is not None, "the page has no table of clients"
    found = re.findall(r"^\| \[[^]]*\]\(\.\./clients/(\S+)\).*\n", block[0], re.MULTILINE)
    lines = re.findall(r"^\| \[.*\n", block[0], re.MULTILINE)
    return dict(zip(found, lines, strict=True))


def with_rows(page: str, new: dict[str, str], order: Sequence[str]) -> str:
    """Return a page with these rows in place of those of the same clients."""
    known = rows(page) | new
    table = _HEAD + "".join(known[path] for path in order if path in known)
    return _BLOCK.sub(lambda _: table, page)
