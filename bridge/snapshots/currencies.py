"""The currencies: the provider's list of active ones, and the precision of others that bets use.

Interface, "Currency exchange".
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from bridge.avro.codec import Codec
from bridge.config import ApiSettings
from bridge.errors import SchemaError
from bridge.rest.endpoints import CurrencyPrecision, ListedCurrency, Questions
from bridge.snapshots.asking import Account, Asks, ProgressCallback, Refused, Thing
from bridge.snapshots.model import Counts, Currency, CurrencyType
from bridge.snapshots.plan import BELIEVED, DISBELIEVED, Estimate, JobInput
from bridge.snapshots.results import Outcome

MAX_NOTES: Final = 100
MAX_NAMED: Final = 10
_THING: Final = "currency"
"""What is asked about, one by one."""
TYPES: Final[dict[int, CurrencyType]] = {1: "Fiat", 2: "Crypto", 3: "Custom"}
"""Currency type: the provider's number → the symbol in Avro."""


class Currencies:
    """One run of the job. `codec` reads the records of its topic."""

    def __init__(self, settings: ApiSettings, codec: Codec, known: JobInput) -> None:
        self._settings = settings
        self._questions = Questions(settings)
        self._known = known
        self._full = known.full
        self._used = (known.kept or known.references).currencies
        self._present: dict[bytes, Currency] = {}
        owed = {name.removeprefix(f"{_THING}:") for name in known.owed}
        self._owed = owed & self._used if known.full and self._used else owed
        self._found: dict[bytes, Currency] = {}
        self._notes: dict[str, None] = {}
        for key, value in known.present.items():
            try:
                self._present[key] = Currency.from_avro(codec.decode(value))
            except SchemaError as error:
                self._note(f"the record of {key.decode()} cannot be read, and is written anew: {error}")

    async def run(self, asks: Asks, progress: ProgressCallback = lambda what, done, total: None) -> Outcome:
        """Ask the provider. Raises ApiError, AuthError and ClockError; nothing is published then."""
        account = Account(asks, self._settings, frozenset(str(_thing(symbol)) for symbol in self._owed))
        whole = await self._list(account, progress)
        missing = {
            key: currency
            for key, currency in self._present.items()
            if key not in self._found and currency.type != "Unknown"
        }
        listed = sum(currency.type != "Unknown" for currency in self._present.values())
        shrunk = whole and len(missing) > self._settings.max_shrink_share * listed
        # What the last full run missed, too; of a list that is short in another way nothing else is.
        again = {key for key in missing if not shrunk or str(_thing(key.decode())) in self._known.missing}
        believed = again if whole and self._full else set[bytes]()
        if shrunk:
            self._note(
                f"the list lacks {len(missing):,} of the {listed:,} currencies that there were, more than "
                f"api.max_shrink_share: {BELIEVED if believed else DISBELIEVED}"
            )
        account.owed -= {str(_thing(symbol)) for symbol in self._owed if symbol.encode() in self._found}
        unlisted = self.unlisted(believed)
        account.begin(len(unlisted))
        for index, symbol in enumerate(unlisted, 1):
            await self._precision(account, symbol)
            progress("currencies by symbol", index, len(unlisted))
        gone = {key for key in believed if key.decode() not in self._used}
        if gone:
            first = sorted(map(bytes.decode, gone))[:MAX_NAMED]
            self._note(f"{len(gone):,} currencies are removed, such as {', '.join(first)}")
        written = {key: new for key, new in self._found.items() if self._present.get(key) != new}
        return Outcome(
            written=dict(written),
            removed=gone,
            counts=self._count(written, gone),
            forbidden=account.forbidden,
            left_out=account.left_out,
            owed=frozenset(account.owed),
            missing=self._missing(missing, whole=whole, shrunk=shrunk),
            notes=list(self._notes),
        )

    def _missing(self, missing: Iterable[bytes], *, whole: bool, shrunk: bool) -> frozenset[str]:
        """For the next full run; a list that is as it should be in between makes it good."""
        if not whole or (shrunk and not self._full):
            return self._known.missing
        return frozenset(str(_thing(key.decode())) for key in missing) if shrunk else frozenset()

    def unlisted(self, gone: Container[bytes] = ()) -> list[str]:
        """Symbols whose precision is asked for: bets use them, and no list has told it.

        `gone` has the keys of what was listed once and is no more.
        """

        def is_asked(symbol: str) -> bool:
            known = self._present.get(symbol.encode())
            return known is None or symbol.encode() in gone or (self._full and known.type == "Unknown")

        wanted = {*filter(is_asked, self._used), *self._owed}
        return sorted(symbol for symbol in wanted if symbol.encode() not in self._found)

    @property
    def most_unlisted(self) -> int:
        """How many symbols that may be, before the list is read."""
        return len(self.unlisted(self._present if self._full else ()))

    async def _list(self, account: Account, progress: ProgressCallback) -> bool:
        """Whether the whole list was read: all, then each type, in case the first is not all of it."""
        types = [None, *TYPES]
        whole = True
        for index, type_ in enumerate(types, 1):
            request = self._questions.active_currencies(type_)
            try:
                answered = await account.ask(request)
            except Refused as refused:
                if not refused.forbidden:
                    raise refused.error from None
                account.leave_out(refused.endpoint, None if type_ is None else TYPES[type_], str(refused))
                whole = False
                continue
            account.must_believe(request, answered)
            for flaw in answered.flaws:
                account.leave_out(request.endpoint, None, flaw.why)
            whole = whole and not answered.flaws
            for currency in answered.content or ():
                self._take(currency)
            progress("active currencies", index, len(types))
        return whole

    def _take(self, listed: ListedCurrency) -> None:
        symbol, type_ = listed.get("symbol"), listed["type"]
        if not symbol:
            self._note(
                f"a currency without a symbol is listed (type {type_}): it has no key, and is left out"
            )
            return
        if type_ not in TYPES:
            self._note(f"{symbol} is listed with the unknown type {type_}: it is published as Unknown")
        new = Currency(symbol, TYPES.get(type_, "Unknown"), listed["precision"])
        first = self._found.setdefault(new.key, new)
        if first != new:
            self._note(
                f"{symbol} is listed in two ways: {first.type}, precision {first.precision}, which is "
                f"published, and {new.type}, precision {new.precision}"
            )

    def _note(self, note: str) -> None:
        if len(self._notes) < MAX_NOTES:
            self._notes[note] = None

    async def _precision(self, account: Account, symbol: str) -> None:
        async def ask(thing: Thing) -> CurrencyPrecision | None:
            return await account.about(thing, self._questions.currency_precision(symbol))

        if found := await account.tell(_thing(symbol), ask):
            currency = Currency(symbol, "Unknown", found["precision"])
            self._found[currency.key] = currency

    def _count(self, written: dict[bytes, Currency], gone: set[bytes]) -> dict[str, Counts]:
        counts: dict[str, Counts] = {kind: Counts() for kind in ("Fiat", "Crypto", "Custom", "Unknown")}
        for key, currency in (self._present | self._found).items():
            if key in gone:
                counts[currency.type].removed += 1
            else:
                counts[currency.type].records += 1
                counts[currency.type].written += key in written
        return counts


def _thing(symbol: str) -> Thing:
    return Thing(_THING, symbol)


def estimate(job: Currencies) -> list[Estimate]:
    """What a run would ask, before it has asked anything. Retries are not in it."""
    lists = len(TYPES) + 1
    return [
        Estimate("/api/CurrencyExchange/active-currencies", lists, lists),
        # Only those that the list lacks.
        Estimate("/api/CurrencyExchange/currency-precision", 0, job.most_unlisted),
    ]
