"""`bridge`, killed at a chosen call: `python -m tests.killed PLACE WHEN NUMBER deadletters redrive`.

PLACE is `module:name.of.a.function`, WHEN is `before` or `after`: the process ends by SIGKILL before the call
of that NUMBER, counted from 1, or when it has returned. With `stop` it gets SIGTERM then.
"""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import sys
from functools import reduce
from typing import Any

from bridge.cli import main


def kill_at(place: str, when: str, number: int) -> None:
    """Have this process killed at that call."""
    module, _, path = place.partition(":")
    *parents, name = path.split(".")
    holder = reduce(getattr, parents, importlib.import_module(module))
    function, calls = getattr(holder, name), itertools.count(1)

    def called(*arguments: Any, **named: Any) -> Any:
        due = next(calls) == number
        if due and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **named)
        if due:
            os.kill(os.getpid(), signal.SIGTERM if when == "stop" else signal.SIGKILL)
        return result

    setattr(holder, name, called)


if __name__ == "__main__":
    place, when, number = sys.argv[1:4]
    del sys.argv[1:4]
    kill_at(place, when, int(number))
    main()
