"""Decides what is committed, and when: the current batch with the checkpoint that covers it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from bridge.clock_skew import Skew
from bridge.kafka.batch import BACKLOG, Batch, Reached, Record, batch_linger
from bridge.kafka.errors import TooMuch
from bridge.kafka.pace import LEAST_BYTES
from bridge.log import get
from bridge.observability.status import LAG_BOUNDS, DurationHistogram
from bridge.records.checkpoint import Checkpoint, State, checkpoint_record
from bridge.records.dead_letter import is_sample
from bridge.service.committer import Committer
from bridge.service.interfaces import Dependencies
from bridge.service.pipeline import Pipeline
from bridge.service.term import Term

SHOWN_BETS = 10
LARGEST_SHOWN_BYTES = 4 * 1024
"""A larger bet is passed over: ten of them are decoded for the page each second."""


class VisibilityDelays:
    """How long what was committed took to become visible, and the last bets of it."""

    def __init__(self, bets: str, *, show_bets: bool) -> None:
        self._bets = bets
        self.receipt = DurationHistogram()
        """Of the first message of a transaction, from its receipt."""
        self.settlement = DurationHistogram(bounds=LAG_BOUNDS)
        """From the newest settlementTime of a transaction, by the provider's clock."""
        self.last_bets: deque[bytes] | None = deque(maxlen=SHOWN_BETS) if show_bets else None
        """The Avro values of the last bets, oldest first; None if the page may not show them."""

    def observe(self, batch: Batch, now: float, skew: Skew | None) -> None:
        """Take note of a batch that was committed just now."""
        if batch.received_at is not None:
            self.receipt.observe(now - batch.received_at)
        if batch.settled_at is not None:
            self.settlement.observe(now + (skew.seconds if skew else 0.0) - batch.settled_at)
        if self.last_bets is not None:  # a few steps a commit, none for a message
            values = (record.value for record in reversed(batch.records) if record.topic == self._bets)
            shown = (value for value in values if value and len(value) <= LARGEST_SHOWN_BYTES)
            self.last_bets.extend([*islice(shown, SHOWN_BETS)][::-1])


@dataclass(eq=False, repr=False)
class Checkpointer:
    """Commits the pipeline's current batch. Nothing is committed without a checkpoint."""

    dependencies: Dependencies
    term: Term
    pipeline: Pipeline
    committer: Committer

    def __post_init__(self) -> None:
        self._clock = self.term.clock
        self._latest = self.term.committed
        """The last checkpoint, committed or being committed."""
        self._committing: Batch | None = None
        """What is being committed."""
        self._rewound = False
        """Whether its checkpoint takes the position back."""
        self._produced = 0
        """How many records of the pipeline's batch may have been produced."""
        bets, web = self.dependencies.topics.bets.name, self.term.settings.web
        self.visibility = VisibilityDelays(bets, show_bets=web.show_bets)

    @property
    def uncommitted(self) -> int:
        """Number of records in the batch that is being committed and in the next one."""
        committing = len(self._committing.records) if self._committing is not None else 0
        return committing + len(self.pipeline.batch.records)

    def due_at(self, backlog: int) -> float | None:
        """Return when the next commit is due, monotonic seconds; None if there is nothing to commit.

        `backlog` is the number of messages that were at hand at once.
        """
        if self.committer.busy:
            return None
        if self._latest is None or self._latest.state is not self.term.status.state:
            return 0.0
        if self.pipeline.batch.records and self._clock().monotonic < self.committer.next_begin_at:
            return self.committer.next_begin_at  # the records are produced first
        if self.pipeline.full or self._is_large:
            return 0.0
        opened_at = self.pipeline.batch.opened_at
        if opened_at is None:
            return None
        # While the last transaction was committed, this one could not begin.
        begin_at = max(opened_at, self.committer.next_begin_at)
        return begin_at + batch_linger(self.term.settings.batch, backlog)

    def advance(self, backlog: int) -> None:
        """Produce new records, and begin a commit when it is due, unless one is running.

        Of a large backlog, the records are produced when the batch is due: fewer and larger requests are half
        the work for a broker. Raises the error of the last commit.
        """
        if not self._collect():
            if backlog >= BACKLOG:
                self.committer.writer.poll()
            return
        now, due = self._clock().monotonic, self.due_at(backlog)
        is_due = due is not None and now >= due
        if is_due or (backlog < BACKLOG and now >= self.committer.next_begin_at and not self._is_large):
            head = self._take_head() if is_due else None
            # Only fills the client's queue; another thread would wait for the interpreter lock each time.
            self.committer.writer.write(head or self.pipeline.batch)
            self._produced = len(self.pipeline.batch.records)
            if is_due:
                self._start(head)

    async def commit(self, *, check_generation: bool = False) -> None:
        """Commit at once and wait for it, even an empty batch: the checkpoint is what matters.

        `check_generation` as in `Writer.commit`.
        """
        await self._finish()
        committed = False
        while not committed:
            head = self._take_head()
            self._start(head, check_generation=check_generation)
            committed = await self._finish() and head is None

    async def _finish(self) -> bool:
        """Wait for the running commit. Return whether it was not too much."""
        try:
            await self.committer.finish()
        except TooMuch as error:
            self._take_back(error)
            return False
        return self._collect()

    @property
    def _is_large(self) -> bool:
        """Whether the batch is more than one transaction, and not just a little more."""
        return self.pipeline.batch.bytes > 1.5 * self.committer.writer.pace.bytes

    def _take_head(self) -> Batch | None:
        """Return a part of the batch, to be committed first, if that is too much for one transaction.

        Without the record of a gap: the position is behind that only with the checkpoint of the whole.
        """
        if self._latest is None or not self._is_large:
            return None
        most, gaps = self.committer.writer.pace.bytes, self.dependencies.topics.gaps.name
        return self.pipeline.batch.split(most, self._produced, gaps)

    def _collect(self) -> bool:
        pace, now = self.committer.writer.pace, self._clock().monotonic
        try:
            if not self.committer.collect():
                return False
        except TooMuch as error:
            self._take_back(error)
            return True
        self.term.committed = committed = self._latest
        if self._committing is not None:
            assert committed is not None
            self.term.topics = committed.topics
            self.visibility.observe(self._committing, self._clock().wall, self.term.timekeeper.skew)
            pace.took(self._committing.bytes, self.committer.took, now)
            self.pipeline.transaction_bytes = pace.bytes
            self._committing = None
        return True

    def _take_back(self, error: TooMuch) -> None:
        """Have the batch that Kafka did not take written again, in parts: nothing of it is committed."""
        batch, pace = self._committing, self.committer.writer.pace
        assert batch is not None
        pace.gave_up(batch.bytes, error.delivered, error.seconds, self._clock().monotonic)
        self.pipeline.transaction_bytes = pace.bytes
        get().warning(
            "a transaction is too large for the pace of Kafka",
            reason=str(error),
            bytes=batch.bytes,
            next_bytes=pace.bytes,
        )
        batch.extend(self.pipeline.batch)
        self.pipeline.batch, self._committing, self._produced = batch, None, 0
        self.term.position.rewound |= self._rewound
        self._latest = self.term.committed

    def _start(self, head: Batch | None, *, check_generation: bool = False) -> None:
        """Begin to commit a part of the batch, or all of it, with the checkpoint that covers it."""
        if head is None:
            self._rewound = self.term.position.rewound
            checkpoint, batch = self._checkpoint(), self.pipeline.take_batch()
        else:
            assert self._latest is not None
            self._rewound = False
            checkpoint, batch = self._covering(head, self._latest), head
        self._produced = 0
        self._latest, self._committing = checkpoint, batch
        is_large = len(batch.records) > 1 and batch.bytes > 2 * LEAST_BYTES
        divisible = self.term.committed is not None and is_large
        complete = partial(self._complete, checkpoint)
        self.committer.start(batch, complete, check_generation=check_generation, divisible=divisible)

    def _complete(self, checkpoint: Checkpoint, reached: Reached) -> Record:
        """Return the record of the checkpoint, once the records are delivered, on the writer's thread."""
        self._latest = checkpoint = checkpoint.reaching(reached)
        topics, codecs = self.dependencies.topics, self.dependencies.codecs
        return checkpoint_record(topics.checkpoints.name, codecs.checkpoints, checkpoint)

    def _covering(self, head: Batch, before: Checkpoint) -> Checkpoint:
        """Return what can be promised of a part: the position of before. A replay would bring it again.

        It awaits what was awaited before, if a gap follows in the rest. What came with its records, such as
        pings, is counted with the whole.
        """
        bets, counters = self.dependencies.topics.bets.name, before.counters.copy()
        for record in head.records[head.again :]:
            counters.published += record.topic == bets
            counters.dead_lettered += record.topic != bets and not is_sample(record)
        counters.balance()
        gaps = self.dependencies.topics.gaps.name
        before_gap = any(topic == gaps for topic, _ in self.pipeline.batch.placed)
        return replace(
            self._described(),
            revision=before.revision,
            newest=before.newest,
            unproven=before.unproven if before_gap else self.pipeline.replay.unproven,
            counters=counters,
            starting=before.starting,
        )

    def _checkpoint(self) -> Checkpoint:
        """Return the checkpoint that covers all that was received."""
        checkpoint, position = self._described(), self.term.position
        assert checkpoint.counters.balanced, f"messages unaccounted for: {checkpoint.counters}"
        follows = self._latest is None or checkpoint.follows(self._latest, rewound=position.rewound)
        assert follows, "the checkpoint would go back"
        position.rewound = False
        return checkpoint

    def _described(self) -> Checkpoint:
        term, now = self.term, self._clock()
        status, skew = term.status, term.timekeeper.skew
        state = status.state or State.CONNECTING
        term.limiter.observe(now)  # a clock that was set must not make attempts older
        return Checkpoint(
            feed=term.settings.feed.name,
            revision=term.position.revision,
            state=state,
            ledger=term.limiter.ledger,
            counters=term.counters.copy(),
            updated_at=now.wall,
            owner=self.dependencies.owner_id,
            reason=status.reason,
            since=status.since,
            until=status.until,
            newest=self.pipeline.replay.newest,
            unproven=self.pipeline.replay.unproven,
            skew=skew.seconds if skew else None,
            catch_up=term.progress.catch_up(now.wall) if state is State.CATCHING_UP else None,
            moved=term.start.moved,
            topics=term.topics,
            starting=term.starting,
            bets_schema=self.dependencies.codecs.bets.schema_id,
        )
