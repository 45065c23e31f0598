"""All faults, by name."""

from __future__ import annotations

import re
from inspect import isabstract

from tests.storm import faults, identities
from tests.storm.faults import Fault

FAULTS: dict[str, type[Fault]] = {
    re.sub("(?<=.)([A-Z])", r"-\1", name).lower(): kind
    for module in (faults, identities)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Fault) and kind.__module__ == module.__name__
    if not isabstract(kind)
}
"""`kill-bridge` is `KillBridge`."""
