"""The currencies: the provider's list of active ones, and the precision of others that bets use.

Interface, "Currency exchange".
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from bridge.avro.codec import Codec
from bridge.config import ApiSettings
from bridge.rest.endpoints import CurrencyPrecision, ListedCurrency, Questions
from bridge.snapshots.asking import Account, Asks, ProgressCallback, Thing
from bridge.snapshots.forgotten import Vanished
from bridge.snapshots.model import Currency, CurrencyType
from bridge.snapshots.published import Portion, Published
from bridge.snapshots.wanted import Estimate, Found

MAX_NOTES: Final = 100
_THING: Final = "currency"
"""The kind of the things asked about one by one."""
TYPES: Final[dict[int, CurrencyType]] = {1: "Fiat", 2: "Crypto", 3: "Custom"}
"""Currency type: the provider's number → the Avro symbol."""


class Currencies:
    """One run of the job. `codec` decodes the records of its topic."""

    def __init__(self, settings: ApiSettings, codec: Codec, found: Found) -> None:
        self._settings, self._questions, self._full = settings, Questions(settings), found.full
        self._used = {*(found.state.usage if found.full else found.usage).of["currency"]}
        self._published = Published(found.present, codec, Currency, (*TYPES.values(), "Unknown"))
        self._present = {key: record for key in found.present if (record := self._published.get(key))}
        self._refused = found.state.refused
        owed = {name.removeprefix(f"{_THING}:") for name in self._refused["owed"]}
        self._owed = owed & self._used if found.full and self._used else owed
        self._new: dict[bytes, Currency] = {}
        self._notes: dict[str, None] = {}

    async def run(self, asks: Asks, snapshot_id: str, progress: ProgressCallback, _: object) -> Portion:
        """Ask about everything and merge it. Raises ApiError, AuthError and ClockError."""
        owed = (f"{_THING}:{symbol}" for symbol in self._owed)
        account = Account(asks, self._settings, owed, progress)
        whole = await self._list(account)
        vanished = Vanished(self._settings, self._refused["missing"], full=self._full)
        gone = set[str]()
        if whole:
            known = [x.symbol for x in self._present.values() if x.type != "Unknown"]
            missing = [symbol for symbol in known if symbol.encode() not in self._new]
            gone = vanished.believed(_THING, known, missing, "currencies")
        account.owed -= {f"{_THING}:{symbol}" for symbol in self._owed if symbol.encode() in self._new}

        async def precision(thing: Thing) -> CurrencyPrecision | None:
            return await account.ask_about(thing, self._questions.currency_precision(str(thing.id)))

        def take(thing: Thing, found: CurrencyPrecision) -> None:
            currency = Currency(str(thing.id), "Unknown", found["precision"])
            self._new[currency.key] = currency

        unlisted = [Thing(_THING, symbol) for symbol in self.unlisted(gone)]
        await account.ask_each("currencies by symbol", unlisted, precision, take)
        changed = [new for key, new in self._new.items() if self._present.get(key) != new]
        self._published.gone = {symbol.encode() for symbol in gone - self._used}
        portion = self._published.change(snapshot_id, changed, account, whole=True)
        portion.notes = [*vanished.notes, *self._notes, *self._published.notes()]
        self._refused["missing"] = vanished.missing
        return portion

    def unlisted(self, gone: Container[str] = ()) -> list[str]:
        """Return the symbols whose precision is requested: bets use them, and no list has them.

        `gone` has the currencies that are no longer listed.
        """

        def is_asked(symbol: str) -> bool:
            present = self._present.get(symbol.encode())
            return present is None or symbol in gone or (self._full and present.type == "Unknown")

        wanted = {*filter(is_asked, self._used), *self._owed}
        return sorted(symbol for symbol in wanted if symbol.encode() not in self._new)

    def estimate(self) -> list[Estimate]:
        """Estimate the requests of a run before it starts, without retries."""
        lists = len(TYPES) + 1
        # Only for symbols that the list lacks.
        unlisted = self.unlisted([x.symbol for x in self._present.values()] if self._full else ())
        return [
            Estimate("/api/CurrencyExchange/active-currencies", lists, lists),
            Estimate("/api/CurrencyExchange/currency-precision", 0, len(unlisted)),
        ]

    async def _list(self, account: Account) -> bool:
        """Read the list as a whole and by type, in case that gives more. Returns whether all was read."""
        types, whole = [None, *TYPES], True
        for index, type_ in enumerate(types, 1):
            request = self._questions.active_currencies(type_)
            answered = await account.ask_list(request, None if type_ is None else TYPES[type_])
            if answered is None:
                whole = False
                continue
            for flaw in answered.flaws:
                account.leave_out(request.endpoint, None, flaw.why)
            whole = whole and not answered.flaws
            for currency in answered.content or ():
                self._take(currency)
            account.progress("active currencies", index, len(types))
        return whole

    def _take(self, listed: ListedCurrency) -> None:
        symbol, type_ = listed.get("symbol"), listed["type"]
        if not symbol:
            self._note(f"a currency without a symbol is listed (type {type_}): it has no key and is left out")
            return
        if type_ not in TYPES:
            self._note(f"{symbol} is listed with the unknown type {type_}: it is published as Unknown")
        new = Currency(symbol, TYPES.get(type_, "Unknown"), listed["precision"])
        first = self._new.setdefault(new.key, new)
        if first != new:
            self._note(
                f"{symbol} is listed in two ways: {first.type}, precision {first.precision}, which is "
                f"published, and {new.type}, precision {new.precision}"
            )

    def _note(self, note: str) -> None:
        if len(self._notes) < MAX_NOTES:
            self._notes[note] = None
