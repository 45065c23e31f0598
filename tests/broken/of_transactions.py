"""Faults in what is written in which transaction, and in what is read back."""

from __future__ import annotations

from tests.broken.fault import Fault, Patch
from tests.judge import Anomaly

_NOT_EARLY = Patch(
    "kafka/batch_writer.py", "        self._writer.produce_ready(batch.records)", "        return"
)
"""Records are produced by `commit` alone, so that a fault can reorder the batch."""
_SECOND_PRODUCER = Patch(
    "kafka/batch_writer.py",
    '        self._worker = Worker("kafka")',
    '        self._worker = Worker("kafka")\n        self._plain = clients._create(Producer, settings.kafka)',
)
_CONFIRMED_UNASKED = Patch(
    "kafka/election.py",
    "        while self.is_owner and not give_up():\n            self._number += 1",
    "        return True\n        while self.is_owner and not give_up():\n            self._number += 1",
)
_HOLDS_FOR_EVER = Patch(
    "kafka/election.py", "        return self.is_owner and self._term == term", "        return True"
)
_ANY_MARKER = Patch("kafka/batch_writer.py", "        if found != last:", "        if False:")

FAULTS = (
    Fault(
        "checkpoint before data",
        "a checkpoint is committed one transaction before the records that it covers",
        "kills",
        (Anomaly.LOST_WRITE, Anomaly.COUNTERS, Anomaly.CHECKPOINT_AHEAD),
        (
            _NOT_EARLY,
            Patch(
                "service/checkpointer.py",
                "        self.committer.start(batch, complete, check_generation=check_generation,"
                " divisible=divisible)",
                '        ready, self._held = getattr(self, "_held", None) or type(batch)(), batch\n'
                "        self.committer.start(ready, complete, check_generation=check_generation)",
            ),
        ),
        shown_by={Anomaly.COUNTERS: "the topic has"},
    ),
    Fault(
        "checkpoint outside the transaction",
        "the checkpoint is written by a producer without transactions",
        "kills",
        (Anomaly.LOST_WRITE, Anomaly.COUNTERS, Anomaly.CHECKPOINT_AHEAD),
        (
            _SECOND_PRODUCER,
            Patch(
                "kafka/batch_writer.py",
                "                writer.produce_blocking([checkpoint])\n",
                "                checkpoint.produce(self._plain.produce)\n"
                "                self._plain.flush()\n",
            ),
        ),
        shown_by={Anomaly.COUNTERS: "the topic has"},
    ),
    Fault(
        "dead letter outside the transaction",
        "dead letters are written by a producer without transactions",
        "kills",
        (Anomaly.ABORTED_READ, Anomaly.DUPLICATE, Anomaly.COUNTERS),
        (
            _NOT_EARLY,
            _SECOND_PRODUCER,
            Patch(
                "kafka/batch_writer.py",
                "        writer, records = self._writer, batch.records\n",
                '        letters = [r for r in batch.records if r.topic.endswith(".deadletters")]\n'
                "        for letter in letters:\n"
                "            letter.produce(self._plain.produce)\n"
                "        self._plain.flush()\n"
                "        batch.records[:] = [r for r in batch.records if r not in letters]\n"
                "        writer, records = self._writer, batch.records\n",
            ),
        ),
        shown_by={Anomaly.ABORTED_READ: "without a transaction", Anomaly.COUNTERS: "deadLettered is"},
    ),
    Fault(
        "no fencing",
        "each process has a transactional id of its own",
        "late notice",
        (Anomaly.DUPLICATE, Anomaly.COUNTERS, Anomaly.CHECKPOINT_BACK),
        (
            Patch(
                "kafka/batch_writer.py",
                '    return f"{settings.topics.prefix}.{settings.feed.name}"',
                '    return f"{settings.topics.prefix}.{settings.feed.name}.{threading.get_native_id()}"',
            ),
        ),
        shown_by={Anomaly.COUNTERS: "falls from"},
    ),
    Fault(
        "unknown outcome taken for a success",
        "after an indefinite error of a commit the checkpoint is not compared",
        "unanswered commits",
        (Anomaly.LOST_WRITE, Anomaly.COUNTERS),
        (
            Patch(
                "kafka/transactions.py",
                "            if self.asked is not None and found == self.asked:",
                "            if self.asked is not None:",
            ),
        ),
        shown_by={Anomaly.COUNTERS: "the topic has"},
    ),
    Fault(
        "commit retried that had succeeded",
        "after an indefinite error of a commit the batch is written again in any case",
        "unanswered commits",
        (Anomaly.DUPLICATE,),
        (
            Patch(
                "kafka/transactions.py",
                "            if self.asked is not None and found == self.asked:",
                "            if False:",
            ),
            _ANY_MARKER,
        ),
    ),
    Fault(
        "batch dropped on abort",
        "what was produced before an abort is not produced again",
        "unanswered commits",
        (Anomaly.LOST_WRITE,),
        (
            Patch(
                "kafka/transactions.py",
                "        self.asked = None  # nothing of it was committed\n        self._reset(_Phase.EMPTY)",
                "        self.asked = None\n        self._phase = _Phase.EMPTY",
            ),
        ),
    ),
    Fault(
        "batch doubled on abort",
        "where a transaction should be aborted, it is committed, and the batch written again",
        "unanswered commits",
        (Anomaly.DUPLICATE,),
        (
            Patch(
                "kafka/transactions.py",
                "        self._call(self._need().abort_transaction, self._seconds)",
                "        self._call(self._need().commit_transaction, self._seconds)",
            ),
        ),
    ),
    Fault(
        "what Kafka discards is lost",
        "after an abort nobody looks for what was acknowledged before it",
        "unanswered commits",
        (Anomaly.LOST_WRITE,),
        (
            Patch(
                "kafka/batch_writer.py",
                "            if lost := self._acknowledged.discarded(records):",
                "            if lost := []:",
            ),
        ),
    ),
    Fault(
        "aborted by others, published",
        "what is written again after an abort includes what another producer has aborted",
        "unanswered commits",
        (Anomaly.DUPLICATE, Anomaly.WRONG_FIELD),
        (
            Patch(
                "kafka/acknowledged.py",
                "        acknowledged = {content for _, content in hidden}.intersection(self._hashes[topic])",
                "        acknowledged = {content for _, content in hidden}",
            ),
        ),
    ),
    Fault(
        "messages dropped during a commit",
        "what is received while a batch is committed is forgotten",
        "replay",
        (Anomaly.LOST_WRITE,),
        (
            Patch(
                "service/checkpointer.py",
                "            if not self.committer.collect():\n                return False\n",
                "            committing = self.committer.busy\n"
                "            if not self.committer.collect():\n                return False\n"
                "            if committing:\n                self.pipeline.take_batch()\n",
            ),
        ),
        records=0.25,  # a busy machine commits for longer
    ),
    Fault(
        "last record of a batch lost",
        "a batch is sealed without its last record",
        "replay",
        (Anomaly.LOST_WRITE,),
        (
            _NOT_EARLY,
            Patch(
                "service/pipeline.py",
                "        sealed, self.batch = self.batch, Batch()\n",
                "        sealed, self.batch = self.batch, Batch()\n        del sealed.records[-1:]\n",
            ),
        ),
    ),
    Fault(
        "batch written backwards",
        "the records of a batch are produced in the reverse order",
        "replay",
        (Anomaly.NON_MONOTONIC,),
        (
            _NOT_EARLY,
            Patch(
                "service/pipeline.py",
                "        sealed, self.batch = self.batch, Batch()\n",
                "        sealed, self.batch = self.batch, Batch()\n        sealed.records.reverse()\n",
            ),
        ),
    ),
    Fault(
        "partition skipped in read-back",
        "partition 0 of the bets is not read into the deduplicator",
        "kills",
        (Anomaly.DUPLICATE,),
        (
            Patch(
                "kafka/reader.py",
                "        return Cursor(self.topic, starts, ends)",
                '        if self.topic.endswith(".bets"):\n            starts[0] = ends[0]\n'
                "        return Cursor(self.topic, starts, ends)",
            ),
        ),
    ),
    Fault(
        "read-back from too late",
        "the bets are read back from the position on, without the margins",
        "kills",
        (Anomaly.DUPLICATE,),
        (
            Patch(
                "service/owner.py",
                "        restore = partial(dependencies.restore, since, self._gone, committer.report_error)",
                "        since += 15\n"
                "        restore = partial(dependencies.restore, since, self._gone, committer.report_error)",
            ),
        ),
    ),
    Fault(
        "dead letters not read back",
        "a new owner does not know the dead letters",
        "kills",
        (Anomaly.DUPLICATE,),
        (
            Patch(
                "state/restore.py",
                "                deduplicator.record_dead_letter(key, received_at(message))",
                "                pass",
            ),
        ),
    ),
    Fault(
        "read-back of aborted records",
        "consumers read uncommitted: aborted bets are taken for published ones",
        "kills",
        (Anomaly.LOST_WRITE,),
        (
            Patch(
                "kafka/clients.py",
                '    "isolation.level": "read_committed",',
                '    "isolation.level": "read_uncommitted",',
            ),
        ),
    ),
    Fault(
        "former owner goes on",
        "a process that was replaced does not notice it, connects and writes",
        "stopped owner",
        (
            Anomaly.SECOND_CONNECTION,
            Anomaly.DUPLICATE,
            Anomaly.CHECKPOINT_BACK,
            Anomaly.COUNTERS,
            Anomaly.NON_MONOTONIC,
        ),
        (_HOLDS_FOR_EVER, _CONFIRMED_UNASKED, _ANY_MARKER),
        shown_by={Anomaly.COUNTERS: "falls from"},
    ),
    Fault(
        "standby that connects",
        "a standby does not wait until the group assigns it the feed",
        "standby",
        (Anomaly.SECOND_CONNECTION,),
        (
            _HOLDS_FOR_EVER,
            _CONFIRMED_UNASKED,
            Patch(
                "service/app.py", "                if not leadership.is_owner:", "                if False:"
            ),
        ),
    ),
    Fault(
        "bets in any partition",
        "the partition of a bet is not that of its key",
        "replay",
        (Anomaly.WRONG_FIELD, Anomaly.NON_MONOTONIC),
        (
            Patch(
                "service/pipeline.py",
                "partition = partition_of(key, self._bets_partitions)",
                "partition = self.counters.received % 2",
            ),
        ),
    ),
    Fault(
        "another partitioner",
        "keys are hashed with another seed than Java's clients have",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (Patch("kafka/partitioner.py", "0x9747B28C", "0x9747B28D"),),
    ),
    Fault(
        "key altered",
        "the key of a record is the betId in capitals",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            Patch(
                "service/pipeline.py",
                "Record(self._topics.bets.name, key, value, int(at * 1000),",
                "Record(self._topics.bets.name, key.upper(), value, int(at * 1000),",
            ),
        ),
    ),
)
