"""Starts a copy of the bridge, and interrupts it: `start.py COPY MODULES INTERRUPTION run`.

COPY is the directory with the copy, MODULES are those that are patched in it, with commas: each must be the
one that is imported. INTERRUPTION is empty or one of

    PLACE before|after NUMBER       SIGKILL before or after the call of that number, counted from 1; PLACE is
                                    `module:name.of.a.function`
    PLACE delay SECONDS             each call takes so much longer
    commits NUMBER unanswered|unsent|aborted
                                    the error of the commit of that number: it took place and the answer is
                                    lost, it did not take place and nobody knows, or it has to be aborted.
                                    Several are separated by commas: `commits 5 unsent,9 aborted`.
"""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import sys
import time
from functools import reduce
from pathlib import Path
from typing import Any


def check(copy: Path, modules: str) -> None:
    """Check that the bridge and its patched modules are those of the copy, and plain Python."""
    for name in filter(None, ("bridge", *modules.split(","))):
        file = Path(importlib.import_module(name).__file__ or "")
        if not file.is_relative_to(copy) or file.suffix != ".py":
            sys.exit(f"{name} is not the module of the copy: {file}")


def interrupt_calls(place: str, when: str, number: int) -> None:
    """Have this process killed at a call, or each call delayed."""
    module, _, path = place.partition(":")
    *parents, name = path.split(".")
    holder: Any = reduce(getattr, parents, importlib.import_module(module))
    function, calls = getattr(holder, name), itertools.count(1)

    def called(*arguments: Any, **named: Any) -> Any:
        due = next(calls) == number
        if when == "delay":
            time.sleep(number)
        elif due and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **named)
        if due and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(holder, name, called)


def fail_commits(outcomes: dict[int, str]) -> None:
    """Have commits fail, by their number in this process."""
    from confluent_kafka import KafkaError, KafkaException, Producer

    from bridge.kafka import clients

    commits = itertools.count(1)

    class Failing(Producer):
        def commit_transaction(self, *arguments: Any) -> None:
            outcome = outcomes.get(next(commits))
            if outcome in (None, "unanswered"):
                super().commit_transaction(*arguments)
            if outcome is not None:
                aborted = outcome == "aborted"
                raise KafkaException(
                    KafkaError(KafkaError._FAIL, f"a test: {outcome}", txn_requires_abort=aborted)
                )

    setattr(clients, "Producer", Failing)  # noqa: B010


def interrupt(interruption: str) -> None:
    """Prepare an interruption."""
    first, _, rest = interruption.partition(" ")
    if first == "commits":
        fail_commits({int(n): what for n, what in (it.split() for it in rest.split(","))})
    elif first:
        when, number = rest.split()
        interrupt_calls(first, when, int(number))


if __name__ == "__main__":
    copied, patched, interrupted = sys.argv[1:4]
    del sys.argv[1:4]
    sys.path[0] = copied
    check(Path(copied), patched)
    interrupt(interrupted)
    from bridge.cli import main

    main()
