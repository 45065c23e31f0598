"""The translations job: what is fetched, what of it is published, and how well it covers the bets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import filterfalse

from bridge.avro.codec import Codec
from bridge.config import ApiSettings
from bridge.config.api import KINDS, Listed
from bridge.errors import SchemaError, SchemaNotFound
from bridge.rest.endpoints import Questions
from bridge.snapshots.asking import Asks, ProgressCallback
from bridge.snapshots.fetch import Fetcher
from bridge.snapshots.merge import drop_unchanged, forgotten, unpack
from bridge.snapshots.model import Translation, kind_of
from bridge.snapshots.plan import OF_MARKETS, Estimate, FetchPlan, JobInput, Scope, estimate, ids_in
from bridge.snapshots.results import MAX_EXAMPLES, Outcome, count, cover, encode, some


class Translations:
    """One run of the job. `codec` decodes the records of its topic."""

    def __init__(self, settings: ApiSettings, scope: Scope, codec: Codec, job_input: JobInput) -> None:
        self._settings = settings
        self._scope = scope
        self._codec = codec
        self._input = job_input
        self._broken: set[bytes] = set()
        """Keys of records that cannot be decoded."""
        self._removes = job_input.full and not scope.narrowed
        """Whether the run fetches enough to learn what is gone."""
        used = self._used() if self._removes else None
        owed = job_input.state.owed
        if not scope.narrowed:  # a narrowed one leaves what is not its own to the next whole run
            owed = {*filter(scope.covers, owed | job_input.state.partial)}
        self.plan = FetchPlan.of(
            scope,
            job_input.references,
            job_input.present,
            full=job_input.full,
            owed=frozenset(owed if used is None else self._still_wanted(owed, used)),
            missing_before=frozenset(filter(scope.covers, job_input.state.missing)),
            used=used,
        )

    async def run(
        self, asks: Asks, snapshot_id: str, progress: ProgressCallback = lambda what, done, total: None
    ) -> Outcome:
        """Fetch, merge and encode everything. Raises ApiError, AuthError and ClockError."""
        present, references = self._input.present, self._input.references
        fetcher = Fetcher(asks, self._settings, self.plan, references.events, progress)
        names = await fetcher.run()
        records, account = names.records, fetcher.account
        gone = fetcher.gone
        complete, outdated = set[bytes](), set[bytes]()
        if self._removes:
            reliable = self._scope.kinds - fetcher.unreliable_kinds
            # What is owed has texts that only a request that failed may have.
            owed = {*map(str.encode, account.owed)}
            complete = {key for key in names.complete_keys - owed if kind_of(key) in reliable}
            if self._input.kept.events:
                selections_in_use = self._input.state.selections_in_use
                outdated = forgotten(present, self._present, self._input.kept.events, selections_in_use)
        gone |= outdated - records.keys()
        drop_unchanged(records, lambda key: None if key in outdated else self._present(key), complete)
        unnamed = {key for key in records if kind_of(key) == "event" and not unpack(records[key]).texts}

        def lookup(key: bytes) -> Translation | None:
            return None if key in gone else names.record(key) or self._present(key)

        looked_up = {*map(str.encode, self.plan.owed)} | self._of_owed_markets(records)
        coverage = cover(references, self._scope, lookup, looked_up)
        freed = (unpack(records.pop(key)) for key in list(records))
        written = encode(freed, self._codec, snapshot_id, account)
        return Outcome(
            written=written,
            removed=gone,
            counts=count(KINDS, kind_of, present, written, gone),
            forbidden=account.forbidden,
            left_out=account.left_out,
            owed=account.owed,
            partial=self._partial(account.asked),
            missing=fetcher.vanished.missing | self._missing_elsewhere(),
            coverage=coverage,
            notes=self._notes(fetcher, unnamed, gone),
        )

    def estimate(self) -> list[Estimate]:
        """Estimate the requests of a run before it starts, without retries."""
        return estimate(self.plan, Questions(self._settings).by_sport)

    def _of_owed_markets(self, records: Mapping[bytes, bytes]) -> set[bytes]:
        """Return the keys of the markets and selections that were owed and that the answers have."""
        events = {event for (event,) in ids_in(self.plan.owed)["markets"]}
        if not events:
            return set()
        found = ((key, unpack(packed)) for key, packed in records.items() if kind_of(key) in OF_MARKETS)
        return {key for key, record in found if record.event_id in events}

    def _used(self) -> dict[Listed, Collection[int]]:
        """Return what bets use of the kinds with lists. Competitors are those of the mentioned events."""
        bets = self._input.kept
        events = [found for key in bets.keys("event") if (found := self._present(key))]
        return {
            "sport": bets.listed["sport"].union(x.sport_id for x in events if x.sport_id is not None),
            "region": bets.listed["region"].union(x.region_id for x in events if x.region_id is not None),
            "league": bets.listed["league"].union(x.league_id for x in events if x.league_id is not None),
            "competitor": {x for event in events for x in event.competitor_ids or ()},
        }

    def _missing_elsewhere(self) -> set[str]:
        """Return what lists of other kinds than those of a narrowed run lacked: the next full run decides."""
        if not self._scope.narrowed:
            return set()
        return {*filterfalse(self._scope.covers, self._input.state.missing)}

    def _partial(self, asked: set[str]) -> set[str]:
        """Return what a whole run is to ask about again: this one may keep only a part of each answer."""
        if not self._scope.narrowed:
            return set()
        partial = self._input.state.partial | (asked if self._scope.cut else set())
        events = self._input.state.in_use().events  # not only of new bets: a run marks them as seen
        found = ids_in(partial)
        return partial - {
            f"{kind}:{number}"
            for kind in ("event", "markets")
            for (number,) in found[kind]
            if number not in events
        }

    def _still_wanted(self, owed: Collection[str], used: dict[Listed, Collection[int]]) -> Iterator[str]:
        """Return what is owed and still mentioned by bets."""
        bets = self._input.kept
        of_kind: dict[str, Collection[int]] = {
            **{str(kind): ids for kind, ids in used.items()},
            "event": bets.events,
            "markets": bets.events,
            "selection-template": self._input.state.selections_in_use(
                [ids[0] for ids in ids_in(owed)["selection-template"]]
            ),
        }
        for name in owed:
            [(kind, [ids])] = ids_in([name]).items()
            is_wanted = ids in bets.market_types if len(ids) > 1 else ids[0] in of_kind.get(kind, ())
            if is_wanted or not (bets.events or bets.listed["sport"]):
                yield name

    def _present(self, key: bytes) -> Translation | None:
        """Return the topic's record of a key; None if there is none, or if it cannot be decoded.

        Raises SchemaNotFound: what is only not readable now must not be written again or lose its names.
        """
        if (value := self._input.present.get(key)) is None:
            return None
        try:
            return Translation.from_avro(self._codec.decode(value))
        except SchemaNotFound:
            raise
        except SchemaError:
            self._broken.add(key)
            return None

    def _notes(self, fetcher: Fetcher, unnamed: Collection[bytes], gone: Collection[bytes]) -> list[str]:
        notes = [str(comparison) for comparison in fetcher.comparisons.values() if comparison.seen]
        notes += fetcher.vanished.notes
        if self._broken:
            notes.append(
                f"{len(self._broken):,} records of the topic cannot be read, "
                f"{some(key.decode() for key in self._broken)}: a full run writes them again"
            )
        if gone:
            notes.append(f"{len(gone):,} records are removed, {some(key.decode() for key in gone)}")
        if unknown := fetcher.unknown_events:
            notes.append(f"{len(unknown):,} events are unknown to the provider, {some(unknown)}")
        if unnamed:
            notes.append(f"{len(unnamed):,} events have no name, {some(key.decode() for key in unnamed)}")
        texts = fetcher.names.languages
        if others := {x: n for x, n in texts.items() if x not in self._settings.languages}:
            most = ", ".join(f"{language} ({n:,})" for language, n in sorted(others.items())[:MAX_EXAMPLES])
            notes.append(
                f"texts in languages that are not in api.languages: {most}; if one is another name of a "
                "language there, map it with api.language_keys"
            )
        silent = [x for x in self._scope.languages if x not in texts]
        if silent and texts and self._input.full:  # other runs ask about too little
            notes.append(f"no text at all in {', '.join(silent)}: check api.languages and api.language_keys")
        return notes
