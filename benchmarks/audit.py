"""`bridge audit` of a topic of bets, on the cluster and under the prefix of the settings (BRIDGE_…).

    python -m benchmarks.audit --bets 1000000

Writes the bets first, a tenth of them settled again, unless the topic has some: 550 bytes each, in
transactions of 5,000. Prints a JSON object: seconds and CPU of the process of the audit, records a second by
both, and its peak memory.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from subprocess import Popen
from tempfile import TemporaryFile

from benchmarks.process import ROOT, BenchmarkFailed, python
from benchmarks.server import tell
from bridge.clock import MICROS
from bridge.config import load
from bridge.kafka import admin, clients
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.registry import Registry

BATCH = 5_000
SETTLED_AGAIN = 10
"""One bet in so many."""


def fill(bets: int) -> None:
    """Write the bets, and a checkpoint that covers them."""
    settings = load(None)
    declared = topics.ensure(clients.admin(settings.kafka), settings, topics.Topics.of_feed)
    with Registry(settings.registry) as registry:
        codecs = registry.codecs_of_owner(settings.topics.prefix)
    datum = json.loads((ROOT / "examples" / "settled-bet.record.json").read_text("utf-8"))
    datum["selections"] *= 3  # about as large as the provider's
    producer = clients.producer(
        settings.kafka,
        transactional_id=f"{settings.topics.prefix}.benchmark",
        max_record_bytes=topics.max_record_bytes(settings.feed),
    )
    producer.init_transactions(30)
    name, now = declared.bets.name, float(int(time.time()))
    for first in range(0, bets, BATCH):
        producer.begin_transaction()
        for number in range(first, min(first + BATCH, bets)):
            again = number % SETTLED_AGAIN == 0 and number >= BATCH
            key = f"{number - BATCH if again else number:036d}"
            datum |= {"betId": key, "settlementVersion": 1 + again, "settlementTime": int(now * MICROS)}
            producer.produce(name, codecs.bets.encode(datum), key, timestamp=int(now * 1000))
            if number % 500 == 0:
                producer.poll(0)
        last = first + BATCH >= bets
        if last:
            counters = Counters(received=bets, published=bets)
            feed, position = settings.feed.name, int(now) - 90
            checkpoint = Checkpoint(feed, position, State.LIVE, (), counters, now, "benchmark", newest=now)
            value = codecs.checkpoints.encode(checkpoint.to_avro())
            producer.produce(declared.checkpoints.name, value, feed)
        producer.commit_transaction(60)


def main() -> None:
    """Fill the topic if it is empty, and audit it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bets", type=int, default=1_000_000)
    bets = parser.parse_args().bets
    settings = load(None)
    client, name = clients.admin(settings.kafka), topics.declare(settings).bets.name
    if admin.topic_id(client, name) is None or not any(
        admin.end_offsets(client, name, admin.partition_count(client, name))
    ):
        fill(bets)
    began, peak = time.monotonic(), 0.0
    with TemporaryFile() as output, Popen(python("bridge", "audit", "--json"), stdout=output) as ran:
        while ran.poll() is None:  # getrusage would count what this process held when it was forked
            status = Path(f"/proc/{ran.pid}/status").read_text("utf-8")
            peak = max([peak, *(int(it) / 1024 for it in re.findall(r"VmHWM:\s+(\d+)", status))])
            time.sleep(0.05)
        took, used = time.monotonic() - began, getrusage(RUSAGE_CHILDREN)
        output.seek(0)
        if ran.returncode:
            raise BenchmarkFailed(f"the audit has failed: {output.read().decode()}")
        found, cpu = json.load(output), used.ru_utime + used.ru_stime
    count = found["records"]["bets"]
    tell(
        bets=count,
        seconds=round(took, 1),
        cpu_seconds=round(cpu, 1),
        records_per_second=round(count / took),
        records_per_cpu_second=round(count / cpu),
        peak_mb=round(peak),
    )


if __name__ == "__main__":
    main()
