#!/usr/bin/env bash
# On Python 3.11 an exception that is handled while confluent-kafka raises another one is never freed.
#
# Versions: confluent-kafka 2.16.0 (librdkafka 2.16.0), Python 3.11; not so on 3.12 and 3.13. No broker is needed.
# Expected: what an `except` block handled is freed after it, with its frames and all that they hold.
# Seen:     it stays for the life of the process, if the block called a client that raised KafkaException. So each
#           failed call in a handler keeps a whole stack of objects, such as the producer that failed before.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3.11 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check confluent-kafka==2.16.0
venv/bin/python - <<'PYTHON'
import gc
import weakref
from contextlib import suppress

from confluent_kafka import KafkaException, Producer


class First(Exception):
    """What is handled; exceptions of Python itself cannot be watched."""


def is_kept(call):
    try:
        raise First
    except First as error:
        first = weakref.ref(error)
        with suppress(KafkaException, ValueError):
            call()
    gc.collect()
    return first() is not None


client = Producer({"bootstrap.servers": "127.0.0.1:1", "transactional.id": "id", "log_level": 0})
kept = {"Python": is_kept(lambda: int("x")), "confluent-kafka": is_kept(client.begin_transaction)}
print(kept)
assert kept == {"Python": False, "confluent-kafka": True}
PYTHON
