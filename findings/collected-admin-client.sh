#!/usr/bin/env bash
# confluent-kafka's admin client, once it is not referenced any more, leaves the offsets of a group unanswered for ever.
#
# Versions: confluent-kafka 2.16.0 (PyPI, librdkafka 2.16.0); nothing listens at the address.
# Expected: `AdminClient(settings).list_consumer_group_offsets(…)[group].result()`, in one line, gives the result or an
#           error, as with a client that is kept (_TIMED_OUT after the request_timeout), and as `create_topics` does
#           on a client that is not (_DESTROY at once).
# Seen:     the future is never done: neither by the answer, nor by request_timeout, nor by the end of the client.
#           Whoever waits without a time limit hangs. Keep the client in a variable until the future is done.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check confluent-kafka==2.16.0
cat >ask.py <<'PYTHON'
import concurrent.futures

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def offsets(client):
    group = ConsumerGroupTopicPartitions("payouts", [TopicPartition("bets", 0)])
    return client.list_consumer_group_offsets([group], request_timeout=2)["payouts"]


def creation(client):
    return client.create_topics([NewTopic("bets", 1, 1)], request_timeout=2)["bets"]


for ask in (offsets, creation):
    for kept in (True, False):
        client = AdminClient({"bootstrap.servers": "127.0.0.1:9", "log_level": 0})
        future = ask(client)
        if not kept:
            del client
        try:
            seen = future.result(10)
        except concurrent.futures.TimeoutError:
            seen = "nothing in 10 s"
        except KafkaException as error:
            seen = error.args[0].name()
        print(ask.__name__, "kept" if kept else "not kept", seen)
PYTHON
venv/bin/python ask.py 2>/dev/null | tee seen
diff seen - <<'SEEN'
offsets kept _TIMED_OUT
offsets not kept nothing in 10 s
creation kept _TIMED_OUT
creation not kept _DESTROY
SEEN
