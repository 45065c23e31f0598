"""Runs a bridge with a fault, and interrupts it: `python -m tests.broken.start FAULT INTERRUPTION run`.

It must be plain Python, or no rule can be replaced: PYTHONPATH has `tests/plain`. INTERRUPTION is empty or
one of

    PLACE before|after|delay NUMBER as `tests.interruption.interrupt` takes it
    commits NUMBER unanswered|unsent|aborted|unmarked|contested
                                    what becomes of the commit of that number, of those with bets: it takes
                                    place and the answer is lost, it does not take place and nobody knows, it
                                    has to be aborted, it is acknowledged without its markers, and the next
                                    one has to be aborted (decision 0036), or it has to be aborted after
                                    somebody else has aborted a transaction with the same bet under another
                                    key. Several are separated by commas: `commits 5 unsent,9 aborted`.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from bridge.avro.encoder import compiled
from bridge.cli import main
from bridge.kafka import clients
from tests.broken.fault import SOUND
from tests.broken.faults import FAULTS
from tests.interruption import interrupt


def abort_elsewhere(properties: dict[str, Any], topic: str, value: bytes) -> None:
    """Have another producer write a record, and abort."""
    other = Producer(properties | {"transactional.id": f"{topic}.somebody-else"})
    other.init_transactions(20)
    other.begin_transaction()
    other.produce(topic, value, b"of somebody else")
    assert other.flush(20) == 0
    other.abort_transaction(20)


def tell(outcome: str | None) -> None:
    """Write what becomes of a commit to the log, unless it just succeeds."""
    if outcome is not None:
        print(f"a test: {outcome}", file=sys.stderr, flush=True)


def failure(outcome: str) -> Any:
    """Return the error of a commit."""
    aborts = outcome in ("aborted", "contested")
    return KafkaError(KafkaError._FAIL, f"a test: {outcome}", txn_requires_abort=aborts)


def fail_commits(outcomes: dict[int, str]) -> None:
    """Have commits fail, by their number in this process."""
    commits = itertools.count(1)

    class Failing(Producer):
        last_bet: tuple[Any, ...] = ()
        """As passed to `produce`, in this transaction."""
        left_open = False
        """Whether the last commit has left no markers, so that those of this one decide about both."""

        def __init__(self, properties: dict[str, Any], **options: Any) -> None:
            super().__init__(properties, **options)
            self.properties = properties

        def produce(self, topic: str, *arguments: Any) -> None:
            if topic.endswith(".bets"):
                self.last_bet = topic, *arguments
            super().produce(topic, *arguments)

        def begin_transaction(self) -> None:
            if not self.left_open:
                super().begin_transaction()

        def commit_transaction(self, *arguments: Any) -> None:
            outcome = "aborted" if self.left_open else outcomes.get(next(commits)) if self.last_bet else None
            if outcome == "contested":
                abort_elsewhere(self.properties, *self.last_bet[:2])
            self.last_bet, self.left_open = (), outcome == "unmarked"
            tell(outcome)
            if outcome in (None, "unanswered"):
                super().commit_transaction(*arguments)
            if outcome not in (None, "unmarked"):
                raise KafkaException(failure(outcome))

    setattr(clients, "Producer", Failing)  # noqa: B010


def prepare(interruption: str) -> None:
    """Prepare an interruption."""
    first, _, rest = interruption.partition(" ")
    if first == "commits":
        fail_commits({int(n): what for n, what in (it.split() for it in rest.split(","))})
    elif first:
        when, number = rest.split()
        interrupt(first, when, int(number))


if __name__ == "__main__":
    if compiled():
        sys.exit("the bridge is compiled: its rules cannot be replaced")
    fault, interruption = sys.argv[1:3]
    del sys.argv[1:3]
    ({SOUND.name: SOUND} | FAULTS)[fault].apply()
    prepare(interruption)
    main()
