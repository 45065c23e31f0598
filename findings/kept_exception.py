"""An exception that is handled while confluent-kafka raises another one is never freed (decision 0037).

`python findings/kept_exception.py` needs no broker.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import KafkaException, Producer


class First(Exception):
    """What is handled; exceptions of Python itself cannot be watched."""


def keeps(call: Callable[[], object]) -> bool:
    """Return whether an exception that was handled while `call` raised another one is still there."""
    try:
        raise First
    except First as error:
        first = weakref.ref(error)
        with suppress(KafkaException, ValueError):
            call()
    gc.collect()
    return first() is not None


def main() -> None:
    """Print a line for a client of Kafka and one for Python itself."""
    client = Producer({"bootstrap.servers": "127.0.0.1:1", "transactional.id": "id", "log_level": 0})
    for what, call in {"Python": lambda: int("x"), "confluent-kafka": client.begin_transaction}.items():
        print(f"handled while {what} raised another one: {'kept' if keeps(call) else 'freed'}")


if __name__ == "__main__":
    main()
