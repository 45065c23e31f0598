"""What `flush` raises once a producer is fenced, by what its callback does (decision 0032).

`python findings/fenced_producer.py 127.0.0.1:9092` asks a broker, such as that of `bridge dev up`.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "fenced-producer"


def fenced(servers: str, on_delivery: Callable[..., Any]) -> Iterator[tuple[type, Any]]:
    """Yield class and value of what `flush` raises, if anything."""
    settings = {"bootstrap.servers": servers, "transactional.id": f"{uuid.uuid4()}", "log_level": 0}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(30)
    first.begin_transaction()
    first.produce(TOPIC, b"1")
    assert first.flush(30) == 0
    second.init_transactions(30)  # which fences the first
    for _ in range(3):
        first.produce(TOPIC, b"2", on_delivery=on_delivery)
    time.sleep(1)
    try:
        first.flush(30)
    except:  # noqa: E722  # what is no exception, too
        kind, value, _ = sys.exc_info()
        assert kind is not None
        yield kind, value


def main(servers: str) -> None:
    """Print a line for each callback."""
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for made in client.create_topics([NewTopic(TOPIC, 1)]).values():
        made.exception(30)  # it may be there
    callbacks: dict[str, Callable[..., Any]] = {
        "does nothing": lambda _error, _message: None,
        "calls isinstance": lambda error, _message: isinstance(error, int),
        "prints": lambda error, _message: print("  called back:", error),
    }
    for what, callback in callbacks.items():
        for kind, value in fenced(servers, callback):
            print(f"a callback that {what}: {kind.__name__}, an exception: {issubclass(kind, BaseException)}")
            print(f"  {value}")


if __name__ == "__main__":
    main(sys.argv[1])
