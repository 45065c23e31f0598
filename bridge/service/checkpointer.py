"""Decides what is committed, and when: the current batch with the checkpoint that covers it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from bridge.feed.catch_up import CatchUpTracker
from bridge.feed.rate_limits import Limiter
from bridge.kafka.batch import BACKLOG, Batch, Reached, Record, batch_linger
from bridge.kafka.errors import TooMuch
from bridge.kafka.pace import LEAST_BYTES
from bridge.log import get
from bridge.observability.status import LAG_BOUNDS, DurationHistogram
from bridge.service.committer import Committer
from bridge.service.interfaces import Dependencies
from bridge.service.last_bets import LastBets
from bridge.service.pipeline import Pipeline
from bridge.service.timekeeper import Timekeeper
from bridge.state.checkpoint import Checkpoint, State, checkpoint_record
from bridge.state.dead_letter import is_sample
from bridge.state.reach import TopicReach


@dataclass(eq=False, repr=False)
class Checkpointer:
    """Commits the pipeline's current batch. Nothing is committed without a checkpoint."""

    dependencies: Dependencies
    limiter: Limiter
    pipeline: Pipeline
    committer: Committer
    timekeeper: Timekeeper
    committed: Checkpoint | None
    """The last committed checkpoint."""
    topics: tuple[TopicReach, ...]
    """How far the topics reach, by what is committed."""

    def __post_init__(self) -> None:
        self._clock = self.dependencies.clock
        self._status = self.dependencies.status
        start = self.dependencies.settings.feed.start
        self.starting = start == "0" and (self.committed is None or self.committed.starting)
        """Whether the next attempt asks for revision 0: what that replays has not come yet."""
        self._latest = self.committed
        """The last checkpoint, committed or being committed."""
        self._committing: Batch | None = None
        """What is being committed."""
        self._commits = 0
        self._took_back = False
        """Whether its checkpoint takes the position back."""
        self._produced = 0
        """How many records of the pipeline's batch may have been produced."""
        self.receipt_to_visible = DurationHistogram()
        self.settlement_to_visible = DurationHistogram(bounds=LAG_BOUNDS)
        self.progress = CatchUpTracker()
        wanted = self.dependencies.settings.web.show_bets
        self.last_bets = LastBets(self.dependencies.topics.bets.name) if wanted else None

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
        if self._latest is None or self._latest.state is not self._status.state:
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
        return begin_at + batch_linger(self.dependencies.settings.batch, backlog)

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
            before = self._commits
            await self._finish()
            committed = head is None and self._commits > before

    async def _finish(self) -> None:
        try:
            await self.committer.finish()
        except TooMuch as error:
            self._take_back(error)
        else:
            self._collect()

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
        self.committed = self._latest
        if self._committing is not None:
            assert self.committed is not None
            self.topics = self.committed.topics
            self._commits += 1
            self._observe(self._committing)
            pace.took(self._committing.bytes, self.committer.took, now)
            self.pipeline.transaction_bytes = pace.bytes
            self._committing = None
        if self.last_bets is not None:
            self.last_bets.committed()
        return True

    def _observe(self, batch: Batch) -> None:
        """Count how long what was committed just now took to become visible."""
        now = self._clock()
        if batch.received_at is not None:
            self.receipt_to_visible.observe(now.wall - batch.received_at)
        if batch.settled_at is not None:
            skew = self.timekeeper.skew
            self.settlement_to_visible.observe(now.wall + (skew.seconds if skew else 0.0) - batch.settled_at)

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
        self.pipeline.position.taken_back |= self._took_back
        self._latest = self.committed

    def _start(self, head: Batch | None, *, check_generation: bool = False) -> None:
        """Begin to commit a part of the batch, or all of it, with the checkpoint that covers it."""
        if head is None:
            self._took_back = self.pipeline.position.taken_back
            checkpoint, batch = self._checkpoint(), self.pipeline.take_batch()
        else:
            assert self._latest is not None
            self._took_back = False
            checkpoint, batch = self._covering(head, self._latest), head
        self._produced = 0
        self._latest, self._committing = checkpoint, batch
        if self.last_bets is not None:
            self.last_bets.sent(batch)
        is_large = len(batch.records) > 1 and batch.bytes > 2 * LEAST_BYTES
        divisible = self.committed is not None and is_large
        complete = partial(self._complete, checkpoint)
        self.committer.start(batch, complete, check_generation=check_generation, divisible=divisible)

    def _complete(self, checkpoint: Checkpoint, reached: Reached) -> Record:
        """Return the record of the checkpoint, once the records are delivered, on the writer's thread."""
        self._latest = checkpoint = checkpoint.reaching(reached)
        topics, codecs = self.dependencies.topics, self.dependencies.codecs
        return checkpoint_record(topics.checkpoints.name, codecs.checkpoints, checkpoint)

    def _covering(self, head: Batch, before: Checkpoint) -> Checkpoint:
        """Return what can be promised of a part: the position of before. A replay would bring it again.

        What came with its records, such as pings, is counted with the whole.
        """
        bets, counters = self.dependencies.topics.bets.name, before.counters.copy()
        for record in head.records[head.again :]:
            counters.published += record.topic == bets
            counters.dead_lettered += record.topic != bets and not is_sample(record)
        counters.balance()
        return replace(
            self._described(),
            revision=before.revision,
            newest=before.newest,
            counters=counters,
            starting=before.starting,
        )

    def _checkpoint(self) -> Checkpoint:
        """Return the checkpoint that covers all that was received."""
        checkpoint, position = self._described(), self.pipeline.position
        assert checkpoint.counters.balanced, f"messages unaccounted for: {checkpoint.counters}"
        follows = self._latest is None or checkpoint.follows(self._latest, taken_back=position.taken_back)
        assert follows, "the checkpoint would go back"
        position.taken_back = False
        return checkpoint

    def _described(self) -> Checkpoint:
        now, status, position = self._clock(), self._status, self.pipeline.position
        state = status.state or State.CONNECTING
        self.limiter.observe(now)  # a clock that was set must not make attempts older
        return Checkpoint(
            feed=self.dependencies.settings.feed.name,
            revision=position.revision,
            state=state,
            ledger=self.limiter.ledger,
            counters=self.pipeline.counters.copy(),
            updated_at=now.wall,
            owner=self.dependencies.owner_id,
            reason=status.reason,
            since=status.since,
            until=status.until,
            newest=self.pipeline.newest,
            skew=self.timekeeper.skew and self.timekeeper.skew.seconds,
            catch_up=self.progress.catch_up(now.wall) if state is State.CATCHING_UP else None,
            moved=None if self._latest is None else self._latest.moved,
            topics=self.topics,
            starting=self.starting,
            bets_schema=self.dependencies.codecs.bets.schema_id,
        )
