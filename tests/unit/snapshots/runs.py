"""Runs of a job one after the other, as `bridge.snapshots.job` makes them, with its topics in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bridge.config import ApiSettings, Settings
from bridge.snapshots import job
from bridge.snapshots.currencies import Currencies
from bridge.snapshots.job import Task
from bridge.snapshots.model import Job, Snapshot
from bridge.snapshots.plan import JobInput, Scope
from bridge.snapshots.references import References
from bridge.snapshots.results import Outcome
from bridge.snapshots.state import HOUR_SECONDS, JobState
from bridge.snapshots.storage import Learnt
from bridge.snapshots.translations import Translations
from tests.unit.snapshots.world import NOW, Provider, Topic, api

DAY = 86_400.0


class Runs:
    """The topics; `now` is the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: Job = "translations") -> None:
        self.name: Job = name
        self.topic = Topic("translation" if name == "translations" else "currency")
        self.state: dict[bytes, bytes] = {}
        self.last: Snapshot | None = None
        self.now = NOW
        self.lose_state_after_save = False
        self.state_writes = 0
        self._new: list[tuple[float, References]] = []
        monkeypatch.setattr(job, "read_compacted", lambda *_, **__: dict(self.topic))
        monkeypatch.setattr(job, "learn", self._learn)

    def bets(self, references: References, at: float | None = None) -> None:
        """Bets that come now, or were received at that moment."""
        self._new.append((self.now if at is None else at, references))

    def _learn(
        self, settings: Settings, name: Job, state: JobState, now: float, save: Any, progress: Any = None
    ) -> Learnt:
        state.begin()
        if not state.reads_on("topic-id", settings.api.keep_days):  # everything is read again
            self._read: list[tuple[float, References]] = [*getattr(self, "_read", []), *self._new]
            new = [x for x in self._read if x[0] >= now - settings.api.keep_days * DAY]
        else:
            self._read = [*getattr(self, "_read", []), *self._new]
            new = self._new
        self._new = []
        for at, references in new:
            state.learn(int(at // HOUR_SECONDS) * HOUR_SECONDS, references)
        state.learnt({0: len(self._read)}, "topic-id", settings.api.keep_days)
        save()
        return Learnt(len(new), "")

    def _save(self, state: JobState) -> None:
        for key, value in state.changes().items():
            self.state_writes += 1
            if value is None:
                self.state.pop(key, None)
            else:
                self.state[key] = value

    async def run(
        self,
        provider: Provider,
        *,
        full: bool = False,
        settings: ApiSettings | None = None,
        **narrowed: Any,
    ) -> tuple[Snapshot, Outcome, JobInput]:
        """One run, an hour after the last."""
        chosen = Settings(api=settings or api())
        task = Task(self.name, Scope.of(chosen.api, **narrowed), full)
        state = JobState(self.name, self.state)
        known, _ = job._read_input(
            chosen, task, self.last, state, self.now, lambda *_: None, lambda: self._save(state)
        )
        if self.lose_state_after_save:
            self.state.clear()
            self.lose_state_after_save = False
        work: Any = (
            Translations(chosen.api, task.scope, self.topic.codec, known)
            if self.name == "translations"
            else Currencies(chosen.api, self.topic.codec, known)
        )
        outcome = await work.run(provider)
        snapshot = job._snapshot("the-id", task, known, outcome, state.position, self.now, self.now + 5)
        job._remember(state, task, outcome)
        self.topic.take(outcome)
        self._save(state)
        self.last = replace(snapshot)
        self.now += 3600
        return snapshot, outcome, known
