"""Starts a copy of the bridge, and interrupts it: `start.py COPY MODULES INTERRUPTION run`.

COPY is the directory with the copy, MODULES are those that are patched in it, with commas: each must be the
one that is imported. INTERRUPTION is empty or one of

    PLACE before|after|delay NUMBER as `tests.interruption.interrupt` takes it
    commits NUMBER unanswered|unsent|aborted|unmarked
                                    what becomes of the commit of that number, of those with bets: it takes
                                    place and the answer is lost, it does not take place and nobody knows, it
                                    has to be aborted, or it is acknowledged without its markers, and the next
                                    one has to be aborted (decision 0036). Several are separated by commas:
                                    `commits 5 unsent,9 aborted`.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from pathlib import Path
from typing import Any


def check(copy: Path, modules: str) -> None:
    """Check that the bridge and its patched modules are those of the copy, and plain Python."""
    for name in filter(None, ("bridge", *modules.split(","))):
        file = Path(importlib.import_module(name).__file__ or "")
        if not file.is_relative_to(copy) or file.suffix != ".py":
            sys.exit(f"{name} is not the module of the copy: {file}")


def fail_commits(outcomes: dict[int, str]) -> None:
    """Have commits fail, by their number in this process."""
    from confluent_kafka import KafkaError, KafkaException, Producer

    from bridge.kafka import clients

    commits = itertools.count(1)

    class Failing(Producer):
        has_bets = False
        left_open = False
        """Whether the last commit has left no markers, so that those of this one decide about both."""

        def produce(self, topic: str, *arguments: Any) -> None:
            self.has_bets |= topic.endswith(".bets")
            super().produce(topic, *arguments)

        def begin_transaction(self) -> None:
            if not self.left_open:
                super().begin_transaction()

        def commit_transaction(self, *arguments: Any) -> None:
            outcome = "aborted" if self.left_open else outcomes.get(next(commits)) if self.has_bets else None
            self.has_bets, self.left_open = False, outcome == "unmarked"
            if outcome is not None:
                print(f"a test: {outcome}", file=sys.stderr, flush=True)
            if outcome in (None, "unanswered"):
                super().commit_transaction(*arguments)
            if outcome not in (None, "unmarked"):
                raise KafkaException(
                    KafkaError(
                        KafkaError._FAIL, f"a test: {outcome}", txn_requires_abort=outcome == "aborted"
                    )
                )

    setattr(clients, "Producer", Failing)  # noqa: B010


def prepare(interruption: str) -> None:
    """Prepare an interruption."""
    from tests.interruption import interrupt

    first, _, rest = interruption.partition(" ")
    if first == "commits":
        fail_commits({int(n): what for n, what in (it.split() for it in rest.split(","))})
    elif first:
        when, number = rest.split()
        interrupt(first, when, int(number))


if __name__ == "__main__":
    copied, patched, interrupted = sys.argv[1:4]
    del sys.argv[1:4]
    sys.path[:1] = copied, str(Path(__file__).parents[2])
    check(Path(copied), patched)
    prepare(interrupted)
    from bridge.cli import main

    main()
