#!/usr/bin/env bash
# On Python 3.11 what a callback of confluent-kafka raises is never freed, nor what the frames that called it hold.
#
# Versions: confluent-kafka 2.16.0 (librdkafka 2.16.0), Python 3.11 and 3.12. No broker is needed.
# Expected: flush() raises what the delivery callback has raised; once that is handled, it is freed with its frames.
# Seen:     on 3.12 so. On 3.11 it stays for the life of the process, with the local variables of each function between
#           flush() and the handler: a client that is made for each attempt stays connected, one more an attempt.
#           A handler that sets the exception's __traceback__ to None lets the variables go; the exception stays.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
cat >run.py <<'PYTHON'
import gc
import sys
import weakref

from confluent_kafka import Producer


class Refused(Exception):
    """What the callback raises."""


class Buffer:
    """What the function that flushes holds."""


def on_delivery(error, message):
    raise Refused


def is_kept(forget_frames):
    """Whether the exception, and what the caller held, are still there after they were handled."""
    held = []

    def write():
        buffer = Buffer()
        held.append(weakref.ref(buffer))
        client = Producer({"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 200, "log_level": 0})
        client.produce("topic", b"value", on_delivery=on_delivery)
        client.flush(30)

    try:
        write()
    except Refused as error:
        held.insert(0, weakref.ref(error))
        if forget_frames:
            error.__traceback__ = None
    gc.collect()
    exception, variables = held
    return exception() is not None, variables() is not None


found = is_kept(False), is_kept(True)
print(*sys.version_info[:2], "(exception, variables) kept:", found[0], "with __traceback__ = None:", found[1])
old = sys.version_info < (3, 12)
assert found == ((old, old), (old, False))
PYTHON
for version in 3.11 3.12; do
	"python$version" -m venv "venv$version"
	"venv$version/bin/pip" install --quiet --disable-pip-version-check confluent-kafka==2.16.0
	"venv$version/bin/python" run.py
done
