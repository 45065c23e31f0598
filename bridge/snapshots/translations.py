"""The translations: what is asked, what is published of the answers, and how well it covers the bets."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from bridge.avro.codec import Codec
from bridge.config import ApiSettings
from bridge.errors import SchemaError
from bridge.snapshots.asking import Asks, Progress
from bridge.snapshots.coverage import cover
from bridge.snapshots.difference import count, forgotten, merge
from bridge.snapshots.gather import Gatherer
from bridge.snapshots.mentions import Mentions
from bridge.snapshots.outcome import Known, Outcome
from bridge.snapshots.records import LISTED, Listed, Translation, key_of, kind_of
from bridge.snapshots.wants import BELIEVED, DISBELIEVED, Scope, Wants, ids_of

_MOST_NAMED: Final = 10


class Translations:
    """One run of the job. `codec` reads the records of its topic."""

    def __init__(self, settings: ApiSettings, scope: Scope, codec: Codec, known: Known) -> None:
        self._settings = settings
        self._scope = scope
        self._codec = codec
        self._known = known
        self._broken: set[bytes] = set()
        """Keys of records that cannot be read."""
        self._removes = known.full and not scope.narrowed
        """Whether all is asked that tells what is gone."""
        wants = Wants.of(scope, known.mentions, known.present, full=known.full, owed=known.owed)
        if not scope.narrowed:
            lists = {kind: ids_of(kind, known.present) for kind in LISTED}
            wants = replace(wants, known=lists, shrunk_before=known.shrunk)
        if self._removes:
            wants = replace(wants, used=self._used())
        self.wants = wants

    async def run(self, asks: Asks, progress: Progress = lambda what, done, total: None) -> Outcome:
        """Ask the provider. Raises ApiError, AuthError and ClockError; nothing is published then."""
        present, mentions = self._known.present, self._known.mentions
        gatherer = Gatherer(asks, self._settings, self.wants, mentions.events, progress)
        collected = await gatherer.run()
        records, account = collected.records, gatherer.account
        gone = {key_of(kind, x) for kind, found in gatherer.gone.items() for x in found}
        whole, outdated = set[bytes](), set[bytes]()
        if self._removes:
            whole = {key for key in collected.whole if kind_of(key) not in gatherer.untold}
            if self._kept.events:
                outdated = set(forgotten(present, self._present, self._kept))
        gone |= outdated - records.keys()
        merge(records, lambda key: None if key in outdated else self._present(key), whole)
        unnamed = {key for key in records if kind_of(key) == "event" and not records[key].unpack().texts}

        def lookup(key: bytes) -> Translation | None:
            return None if key in gone else collected.record(key) or self._present(key)

        return Outcome(
            written=dict(records),
            removed=gone,
            counts=count(present, records, gone),
            forbidden=account.forbidden,
            left_out=account.left_out,
            owed=frozenset(account.owed),
            shrunk=frozenset(gatherer.shrunk) if self._removes else None,
            coverage=cover(mentions, self._scope.languages, lookup),
            notes=self._notes(gatherer, unnamed, gone),
        )

    @property
    def _kept(self) -> Mentions:
        return self._known.kept or self._known.mentions

    def _used(self) -> dict[Listed, Collection[int]]:
        """What bets use of the kinds that have lists. Bets do not name competitors: their events do."""
        events = (self._present(key) for key in self._kept.keys("event"))
        competitors = {x for event in events if event for x in event.competitor_ids or ()}
        bets = self._kept
        return {
            "sport": bets.sports,
            "region": bets.regions,
            "league": bets.leagues,
            "competitor": competitors,
        }

    def _present(self, key: bytes) -> Translation | None:
        """The record of a key; None where there is none, or none that can be read: it is written anew."""
        if (value := self._known.present.get(key)) is None:
            return None
        try:
            return Translation.from_avro(self._codec.decode(value))
        except SchemaError:
            self._broken.add(key)
            return None

    def _notes(self, gatherer: Gatherer, unnamed: Collection[bytes], gone: Collection[bytes]) -> list[str]:
        notes = [str(verdict) for verdict in gatherer.verdicts.values() if verdict.seen]
        for kind, (missing, known) in gatherer.shrunk.items():
            believed = BELIEVED if self._removes and kind in self._known.shrunk else DISBELIEVED
            notes.append(
                f"the list of {kind}s lacks {missing:,} of the {known:,} that there were, more than "
                f"api.max_shrink_share: {believed}"
            )
        if self._broken:
            notes.append(
                f"{len(self._broken):,} records of the topic cannot be read, "
                f"{_some(key.decode() for key in self._broken)}: a full run writes them anew"
            )
        if gone:
            notes.append(f"{len(gone):,} records are removed, {_some(key.decode() for key in gone)}")
        if unknown := gatherer.unknown_events:
            notes.append(f"{len(unknown):,} events are unknown to the provider, {_some(unknown)}")
        if unnamed:
            notes.append(f"{len(unnamed):,} events have no name, {_some(key.decode() for key in unnamed)}")
        told = gatherer.collected.languages
        if others := {x: n for x, n in told.items() if x not in self._settings.languages}:
            most = ", ".join(f"{language} ({n:,})" for language, n in sorted(others.items())[:_MOST_NAMED])
            notes.append(
                f"texts in languages that are not in api.languages: {most}; if one is another name of a "
                "language there, say so with api.language_keys"
            )
        silent = [x for x in self._scope.languages if x not in told]
        if silent and told and self._known.full:  # others ask about too little to tell
            notes.append(f"no text at all in {', '.join(silent)}: check api.languages and api.language_keys")
        return notes


def _some(things: Iterable[object]) -> str:
    first = sorted(map(str, things))[:_MOST_NAMED]
    return f"such as {', '.join(first)}"
