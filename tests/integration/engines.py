"""The Quix Streams example as a process, and its expected output."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bridge.sandbox.demo.verify import RESULTS
from bridge.sandbox.provider.stream import Published
from bridge.sandbox.provider.world.catalogue import Known
from tests.harness import Place

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".venv" / "quix-join"

Names = dict[str, dict[str, str] | None]
"""What of an item → language → text."""


def environment_python() -> Path:
    """The example's Python; created by the Makefile if missing, by one process at a time."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    with (ENVIRONMENT.parent / "quix-join.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = str((ENVIRONMENT / ".set-up").relative_to(ROOT))
        made = subprocess.run(
            ["make", f"PYTHON={sys.executable}", target],
            cwd=ROOT,
            env=inherited,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert made.returncode == 0, made.stderr
    return ENVIRONMENT / "bin" / "python"


class Join:
    """The example at a place, printing into a file; it ends after this many seconds without a bet."""

    def __init__(self, place: Place, idle: float) -> None:
        self._out, self._log = place.directory / "join.out", place.directory / "join.log"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BRIDGE_")}
        settings = {**place.environment(), "Quix__State__Dir": str(place.directory / "state")}
        command = [str(environment_python()), str(ROOT / "examples" / "quix-join" / "join.py")]
        with self._out.open("wb") as out, self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--idle", str(idle)],
                env={**inherited, **settings},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
            )

    def __enter__(self) -> Join:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def bets(self) -> list[dict[str, Any]]:
        """The bets printed so far."""
        text = self._out.read_text("utf-8")
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def text(self) -> str:
        """Its complete stderr."""
        return self._log.read_text("utf-8")


class Truth:
    """All names and bets of the simulated provider."""

    def __init__(self, known: Iterable[Known]) -> None:
        self._texts: dict[Any, dict[str, str]] = {
            _key(thing): {str(language): text for language, text in thing.texts.items()} for thing in known
        }

    def line(self, message: Published) -> dict[str, Any]:
        """The expected output for a bet, as far as it is compared."""
        bet = json.loads(message.body)["data"]
        return {
            **said(bet),
            "betId": bet["betId"],
            "selections": [self._item(item) for item in bet.get("selections") or ()],
        }

    def _item(self, item: dict[str, Any]) -> dict[str, Any]:
        event, parts = item.get("event"), item.get("betBuilderItems") or ()
        names: Names = {
            "event": self._text("event", event and event["id"]),
            "sport": self._text("sport", item["sportId"]),
            "league": self._text("league", item["competitionId"]),
            "region": self._text("region", item["countryId"]),
        }
        return {
            "names": names | self._own(item, event),
            "parts": [{"names": self._own(part, event)} for part in parts],
        }

    def _own(self, item: dict[str, Any], event: dict[str, Any] | None) -> Names:
        market = item.get("market")
        return {
            "market": self._text("market", event and market and (event["id"], market["id"])),
            "selection": self._text("selection", item["selectionId"]),
        }

    def _text(self, kind: str, number: Any) -> dict[str, str] | None:
        return None if number is None else self._texts[kind, number]


def _key(thing: Known) -> tuple[str, Any]:
    """A market has its id within its event."""
    return thing.kind, (thing.relations["eventId"], thing.id) if thing.kind == "market" else thing.id


def said(bet: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a correction corrects, from the bet as the provider sends it."""
    return {
        "settlementVersion": bet["settlementVersion"],
        "betSettlement": RESULTS[bet["betSettlement"]],
        "payout": bet["payout"],
    }


def compared(line: dict[str, Any]) -> dict[str, Any]:
    """The parts of a printed bet that a `Truth` can produce."""
    return {
        **{name: line[name] for name in ("settlementVersion", "betSettlement", "payout", "betId")},
        "selections": [
            {
                "names": item["names"],
                "parts": [{"names": part["names"]} for part in item["betBuilderItems"] or ()],
            }
            for item in line["selections"] or ()
        ],
    }
