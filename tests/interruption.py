"""Interrupts this process at a chosen call."""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import time
from functools import reduce
from typing import Any


def interrupt(place: str, when: str, number: int) -> None:
    """Interrupt it at the call of that number, counted from 1, of `module:name.of.a.function`.

    `before` and `after` the call it gets SIGKILL, with `stop` it gets SIGTERM afterwards. With `delay` each
    call takes `number` seconds longer.
    """
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
        if due and when in ("after", "stop"):
            os.kill(os.getpid(), signal.SIGTERM if when == "stop" else signal.SIGKILL)
        return result

    setattr(holder, name, called)
