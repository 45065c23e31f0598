"""Step 3 of sports, regions, leagues and competitors: their lists, and by its id what these lack."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.config import ApiSettings
from bridge.config.api import Listed
from bridge.errors import Rejected
from bridge.rest.answers import Flaw
from bridge.rest.endpoints import EntityTranslation, Questions
from bridge.snapshots.asking import Account, Thing
from bridge.snapshots.forgotten import Vanished
from bridge.snapshots.model import Translation, key_of
from bridge.snapshots.published import Published
from bridge.snapshots.texts import Merged
from bridge.snapshots.wanted import Found, Wanted


class ListedKinds:
    """The kinds with lists, in one run. What these have is merged, what nobody knows is noted as gone."""

    def __init__(
        self,
        settings: ApiSettings,
        found: Found,
        wanted: Wanted,
        published: Published[Translation],
        merged: Merged,
    ) -> None:
        self._settings, self._task, self._found, self._wanted = settings, found.task, found, wanted
        self._published, self._merged = published, merged
        self._questions = Questions(settings)
        missing = filter(found.task.covers, found.state.refused["missing"])
        self.vanished = Vanished(settings, missing, full=found.refreshes)
        self.competitors: set[int] = set()
        """Competitors of the events, of this run or the one it goes on with: bets do not name them."""
        for key in found.usage.keys("event") if found.resumed else ():
            self.competitors.update(((event := published.get(key)) and event.competitor_ids) or ())
        self._listed: dict[Listed, set[int]] = {}
        """Kind → the ids of its list, if it was read completely."""
        self._flawed: list[tuple[Listed, str, str, Flaw]] = []
        """Invalid items of lists: kind, language, endpoint and flaw."""

    def sports(self) -> list[int]:
        """Return the sports that bets use, that the topic has, and that are listed."""
        listed = self._listed.get("sport", ())
        return sorted({*listed, *self._wanted.known["sport"], *self._found.usage.of["sport"]})

    async def read(self, kind: Listed, account: Account) -> None:
        """Read the whole list, in each language. Raises as `Account.ask_list`."""
        sports: Sequence[int | None] = self.sports() if self._questions.by_sport(kind) else [None]
        whole, listed = bool(sports), set[int]()
        parts = [(language, sport) for language in self._task.languages for sport in sports]
        for done, (language, sport) in enumerate(parts, 1):
            request = self._questions.listed(kind, language, sport)
            answered = await account.ask_list(request, language)
            whole = whole and answered is not None and all(flaw.id is not None for flaw in answered.flaws)
            if answered is not None:
                self._flawed += ((kind, language, request.endpoint, flaw) for flaw in answered.flaws)
                listed.update(flaw.id for flaw in answered.flaws if flaw.id is not None)
                items = answered.content or []
                items.reverse()
                while items:  # freed one by one: a list may be long
                    listed.add(items[-1]["id"])
                    self._merged.item(kind, items.pop())
            account.progress(f"{kind}s", done, len(parts))
        if whole:
            self._listed[kind] = listed

    async def ask_by_id(self, kind: Listed, account: Account) -> None:
        """Ask about what is used and lacks a language, and check what is missing from the list."""
        missing = self._missing(kind)
        used = self._wanted.listed[kind] | self._competitors_of(kind)
        lacking = {x for x in used if self._lacks(kind, x, self._task.languages)}
        # Owed things may be in a list by now, in each language.
        whole = {x for x in used if not self._lacks(kind, x, self._settings.languages)}
        account.owed -= {str(Thing(kind, number)) for number in whole}

        async def ask(thing: Thing) -> EntityTranslation | None:
            request = self._questions.single(kind, int(thing.id))
            try:
                return await account.ask_about(thing, request, lambda entity: entity["id"])
            except Rejected as error:
                if thing.suspected and error.status == 404:  # gone
                    return {"id": int(thing.id), "translations": {}}
                raise

        def take(thing: Thing, entity: EntityTranslation) -> None:
            self._merged.entity(kind, entity, not thing.flawed)
            if thing.id in missing and not (thing.flawed or self._merged.normalize(entity["translations"])):
                self._published.gone.add(key_of(kind, int(thing.id)))

        things = [Thing(kind, x, suspected=x not in lacking) for x in sorted(lacking | missing)]
        await account.ask_each(f"{kind}s by id", things, ask, take)

    def leave_out_flaws(self, account: Account) -> None:
        """Leave out the invalid items of lists whose text no other answer had."""
        for kind, language, endpoint, flaw in self._flawed:
            if flaw.id is None or self._merged.lacks(kind, flaw.id, (language,)):
                account.leave_out(endpoint, None if flaw.id is None else str(flaw.id), flaw.why)

    def unreliable(self, account: Account) -> set[Listed]:
        """Return the kinds of which a text that is missing may be among the answers that failed."""
        if any(name.startswith("event:") for name in account.owed):
            return {*self._task.lists}
        flawed = {kind for kind, _, _, _ in self._flawed}
        return {kind for kind in self._task.lists if kind not in self._listed or kind in flawed}

    def _competitors_of(self, kind: Listed) -> set[int]:
        return self.competitors if kind == "competitor" else set()

    def _lacks(self, kind: Listed, number: int, languages: Sequence[str]) -> bool:
        if not self._merged.lacks(kind, number, languages):
            return False
        before = self._published.get(key_of(kind, number)) if self._found.resumed else None
        return before is None or not {*languages} <= before.texts.keys()

    def _missing(self, kind: Listed) -> set[int]:
        """Return the ids that the topic has, no bet uses, and neither the list nor another answer has."""
        known = self._wanted.known[kind]
        if kind not in self._listed or self._task.narrowed:
            return set()
        missing = [number for number in known if number not in self._listed[kind]]
        used = self._wanted.used.get(kind, set()) | self._competitors_of(kind)
        gone = self.vanished.believed(kind, known, missing, f"{kind}s")
        return {x for x in gone if x not in used and self._merged.lacks(kind, x, ())}
