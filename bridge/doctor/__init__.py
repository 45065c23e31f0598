"""`bridge doctor`: looks at everything that a bridge depends on, and changes none of it.

The checks do not depend on each other, except where one has nothing to look at once another has failed.
Each has its time: one that hangs is reported like one that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from bridge.config import Settings
from bridge.doctor import feed_checks, kafka_checks
from bridge.doctor.finding import Finding, Outcome
from bridge.errors import BridgeError, SettingsError
from bridge.kafka.blocking import Worker

CHECK_SECONDS = 30.0
"""For one check; what it asks has shorter limits of its own."""


class Check(NamedTuple):
    """One thing to look at. `look` raises BridgeError for what is wrong and explains itself."""

    name: str
    look: Callable[[Settings], Finding]
    settings: tuple[str, ...] = ()
    """Settings without which there is nothing to look at."""
    after: tuple[str, ...] = ()
    """Checks without whose success there is nothing to look at."""


_KAFKA = ("kafka.bootstrap_servers",)
_BOTH = ("kafka.bootstrap_servers", "registry.url")
CHECKS = (
    Check("settings", feed_checks.settings_told),
    Check("secrets", feed_checks.secrets_readable),
    Check("compiled", feed_checks.hot_path_compiled),
    Check("kafka", kafka_checks.brokers_answer, _KAFKA),
    Check("topics", kafka_checks.topics_match, _KAFKA, ("kafka",)),
    Check("rights", kafka_checks.rights_suffice, _KAFKA, ("kafka",)),
    Check("registry", kafka_checks.schemas_stand, ("registry.url",)),
    Check("leadership", kafka_checks.owner_known, _KAFKA, ("kafka",)),
    Check("checkpoint", feed_checks.checkpoint_fresh, _BOTH, ("kafka", "registry")),
    Check("limits", feed_checks.limits_have_room, _BOTH, ("kafka", "registry")),
    Check("provider", feed_checks.provider_answers, ("feed.base_url",)),
)


def examine(
    load: Callable[[], Settings], checks: tuple[Check, ...] = CHECKS, patience: float = CHECK_SECONDS
) -> Iterator[tuple[str, Finding]]:
    """The checks' names and what they find, each as soon as it is found.

    `load` reads the settings and may raise SettingsError; `patience` is in seconds for each check.
    """
    failed: set[str] = set()
    try:
        settings = load()
    except SettingsError as error:
        yield "settings", Finding(Outcome.FAIL, str(error))
        for check in checks:
            if check.name != "settings":
                yield check.name, Finding(Outcome.SKIPPED, "the settings cannot be read")
        return
    for check in checks:
        finding = _not_possible(check, settings, failed) or _looked(check, settings, patience)
        if finding.outcome in (Outcome.FAIL, Outcome.SKIPPED):
            failed.add(check.name)
        yield check.name, finding


def _not_possible(check: Check, settings: Settings, failed: set[str]) -> Finding | None:
    lacking = [name for name in check.settings if not attrgetter(name)(settings)]
    lacking += [name for name in check.after if name in failed]
    return Finding(Outcome.SKIPPED, f"needs {' and '.join(lacking)}") if lacking else None


def _looked(check: Check, settings: Settings, patience: float) -> Finding:
    worker = Worker(check.name)  # a daemon: a call that never returns does not keep the doctor
    try:
        return worker.submit(partial(check.look, settings)).result(patience)
    except TimeoutError:
        return Finding(Outcome.FAIL, f"no answer in {patience:g} s")
    except BridgeError as error:
        return Finding(Outcome.FAIL, str(error))
    except Exception as error:  # noqa: BLE001  # whatever it is, the other checks go on
        return Finding(Outcome.FAIL, f"unforeseen: {error!r}", "Report it, please.")
    finally:
        worker.close(0)
