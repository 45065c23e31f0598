"""The simulator's control endpoint, over HTTP."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

_SECONDS = 600.0


class Published(NamedTuple):
    """A message of the truth."""

    at: float
    seq: int
    sha256: str
    body: bytes


class Provider:
    """Reads the simulator's log and truth."""

    def __init__(self, control_url: str) -> None:
        self._url = control_url

    def get(self, path: str) -> Any:
        """Return the JSON at a path. Raises OSError if nobody answers."""
        with urlopen(f"{self._url}{path}", timeout=_SECONDS) as answer:
            return json.load(answer)

    def truth(self, since: float, until: float) -> Iterator[Published]:
        """Yield everything published between two moments, both included, in order; streamed.

        Raises OSError if the answer is cut off, as `bets` does.
        """
        for line in self._lines(since, until, bodies=1):
            body = line["body"].encode() if "body" in line else base64.b64decode(line["base64"])
            yield Published(line["at"], line["seq"], line["sha256"], body)

    def bets(self, since: float, until: float) -> Iterator[tuple[float, int, str, int]]:
        """Yield the bets of the stream between two moments: when, number, betId and version."""
        for line in self._lines(since, until, bodies=0):
            if line["betId"] is not None:
                yield line["at"], line["seq"], line["betId"], line["settlementVersion"]

    def _lines(self, since: float, until: float, bodies: int) -> Iterator[dict[str, Any]]:
        window = urlencode({"since": repr(since), "until": repr(until)})
        left = self.get(f"/truth/count?{window}")["count"]
        with urlopen(f"{self._url}/truth?{window}&bodies={bodies}", timeout=_SECONDS) as answer:
            for line in answer:
                left -= 1
                yield json.loads(line)
        if left:  # the end of the connection is the end of the answer
            raise OSError(f"{left} messages fewer than the provider has published")
