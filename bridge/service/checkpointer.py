"""Decides what is committed, and when: the current batch with the checkpoint that covers it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bridge.feed.catch_up import CatchUpTracker
from bridge.feed.rate_limits import Limiter
from bridge.kafka.batch import BACKLOG, Batch, Reached, Record, batch_linger
from bridge.observability.status import LAG_BOUNDS, DurationHistogram
from bridge.service.committer import Committer
from bridge.service.interfaces import Dependencies
from bridge.service.last_bets import LastBets
from bridge.service.pipeline import Pipeline
from bridge.service.timekeeper import Timekeeper
from bridge.state.checkpoint import Checkpoint, State, checkpoint_record
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
        if self.pipeline.full:
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
        if is_due or (backlog < BACKLOG and now >= self.committer.next_begin_at):
            # Only fills the client's queue; another thread would wait for the interpreter lock each time.
            self.committer.writer.write(self.pipeline.batch)
        if is_due:
            self._start()

    async def commit(self, *, check_generation: bool = False) -> None:
        """Commit at once and wait for it, even an empty batch: the checkpoint is what matters.

        `check_generation` as in `Writer.commit`.
        """
        await self.committer.finish()
        self._collect()
        self._start(check_generation)
        await self.committer.finish()
        self._collect()

    def _collect(self) -> bool:
        if not self.committer.collect():
            return False
        self.committed = self._latest
        if self.committed is not None:
            self.topics = self.committed.topics
        if self._committing is not None:
            self._observe(self._committing)
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

    def _start(self, check_generation: bool = False) -> None:
        now, status, position = self._clock(), self._status, self.pipeline.position
        state = status.state or State.CONNECTING
        self.limiter.observe(now)  # a clock that was set must not make attempts older
        checkpoint = Checkpoint(
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
        )
        assert checkpoint.counters.balanced, f"messages unaccounted for: {checkpoint.counters}"
        follows = self._latest is None or checkpoint.follows(self._latest, taken_back=position.taken_back)
        assert follows, "the checkpoint would go back"
        position.taken_back = False
        self._latest = checkpoint
        if self.last_bets is not None:
            self.last_bets.sent(self.pipeline.batch)
        self._committing = self.pipeline.batch
        self.committer.start(
            self.pipeline.take_batch(), partial(self._complete, checkpoint), check_generation=check_generation
        )

    def _complete(self, checkpoint: Checkpoint, reached: Reached) -> Record:
        """Return the record of the checkpoint, once the records are delivered, on the writer's thread."""
        self._latest = checkpoint = checkpoint.reaching(reached)
        topics, codecs = self.dependencies.topics, self.dependencies.codecs
        return checkpoint_record(topics.checkpoints.name, codecs.checkpoints, checkpoint)
