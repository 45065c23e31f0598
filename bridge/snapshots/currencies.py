"""The currencies job: the provider's list of active currencies, and the precision of others that bets use.

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
from bridge.snapshots.results import Outcome, encode

MAX_NOTES: Final = 100
MAX_NAMED: Final = 10
_THING: Final = "currency"
"""The kind of the things asked about one by one."""
TYPES: Final[dict[int, CurrencyType]] = {1: "Fiat", 2: "Crypto", 3: "Custom"}
"""Currency type: the provider's number → the Avro symbol."""


class Currencies:
    """One run of the job. `codec` decodes the records of its topic."""

    def __init__(self, settings: ApiSettings, codec: Codec, job_input: JobInput) -> None:
        self._settings = settings
        self._codec = codec
        self._questions = Questions(settings)
        self._input = job_input
        self._full = job_input.full
        self._used = (job_input.kept or job_input.references).currencies
        self._present: dict[bytes, Currency] = {}
        owed = {name.removeprefix(f"{_THING}:") for name in job_input.owed}
        self._owed = owed & self._used if job_input.full and self._used else owed
        self._found: dict[bytes, Currency] = {}
        self._notes: dict[str, None] = {}
        for key, value in job_input.present.items():
            try:
                self._present[key] = Currency.from_avro(codec.decode(value))
            except SchemaError as error:
                self._note(f"the record of {key.decode()} cannot be read and is written again: {error}")

    async def run(
        self, asks: Asks, snapshot_id: str, progress: ProgressCallback = lambda what, done, total: None
    ) -> Outcome:
        """Fetch, merge and encode everything. Raises ApiError, AuthError and ClockError."""
        account = Account(asks, self._settings, frozenset(str(_thing(symbol)) for symbol in self._owed))
        whole = await self._list(account, progress)
        missing = {
            key: currency
            for key, currency in self._present.items()
            if key not in self._found and currency.type != "Unknown"
        }
        listed = sum(currency.type != "Unknown" for currency in self._present.values())
        shrunk = whole and len(missing) > self._settings.max_shrink_share * listed
        # A shrunken list is believed only about what the last full run missed as well.
        again = {key for key in missing if not shrunk or str(_thing(key.decode())) in self._input.missing}
        believed = again if whole and self._full else set[bytes]()
        if shrunk:
            self._note(
                f"the list lacks {len(missing):,} of its former {listed:,} currencies, more than "
                f"api.max_shrink_share: {BELIEVED if believed else DISBELIEVED}"
            )
        account.owed -= {str(_thing(symbol)) for symbol in self._owed if symbol.encode() in self._found}
        unlisted = account.begin([_thing(symbol) for symbol in self.unlisted(believed)])
        for index, thing in enumerate(unlisted, 1):
            await self._precision(account, thing)
            progress("currencies by symbol", index, len(unlisted))
        gone = {key for key in believed if key.decode() not in self._used}
        if gone:
            first = sorted(map(bytes.decode, gone))[:MAX_NAMED]
            self._note(f"{len(gone):,} currencies are removed, such as {', '.join(first)}")
        changed = (new for key, new in self._found.items() if self._present.get(key) != new)
        written = encode(changed, self._codec, snapshot_id, account)
        return Outcome(
            written=written,
            removed=gone,
            counts=self._count(written, gone),
            forbidden=account.forbidden,
            left_out=account.left_out,
            owed=frozenset(account.owed),
            missing=self._missing(missing, whole=whole, shrunk=shrunk),
            notes=list(self._notes),
        )

    def _missing(self, missing: Iterable[bytes], *, whole: bool, shrunk: bool) -> frozenset[str]:
        """Return what the next full run has to compare with; a list of normal length clears it."""
        if not whole or (shrunk and not self._full):
            return self._input.missing
        return frozenset(str(_thing(key.decode())) for key in missing) if shrunk else frozenset()

    def unlisted(self, gone: Container[bytes] = ()) -> list[str]:
        """Return the symbols whose precision is requested: bets use them, and no list has them.

        `gone` has the keys of currencies that are no longer listed.
        """

        def is_asked(symbol: str) -> bool:
            present = self._present.get(symbol.encode())
            return present is None or symbol.encode() in gone or (self._full and present.type == "Unknown")

        wanted = {*filter(is_asked, self._used), *self._owed}
        return sorted(symbol for symbol in wanted if symbol.encode() not in self._found)

    @property
    def max_unlisted(self) -> int:
        """Upper bound of `unlisted`, before the list is read."""
        return len(self.unlisted(self._present if self._full else ()))

    async def _list(self, account: Account, progress: ProgressCallback) -> bool:
        """Read the list as a whole and by type, in case that gives more. Returns whether all was read."""
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
            account.must_be_mostly_valid(request, answered)
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
            self._note(f"a currency without a symbol is listed (type {type_}): it has no key and is left out")
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

    async def _precision(self, account: Account, thing: Thing) -> None:
        symbol = str(thing.id)

        async def ask(thing: Thing) -> CurrencyPrecision | None:
            return await account.ask_about(thing, self._questions.currency_precision(symbol))

        if found := await account.attempt(thing, ask):
            currency = Currency(symbol, "Unknown", found["precision"])
            self._found[currency.key] = currency

    def _count(self, written: Container[bytes], gone: set[bytes]) -> dict[str, Counts]:
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
    """Estimate the requests of a run before it starts, without retries."""
    lists = len(TYPES) + 1
    return [
        Estimate("/api/CurrencyExchange/active-currencies", lists, lists),
        # Only for symbols that the list lacks.
        Estimate("/api/CurrencyExchange/currency-precision", 0, job.max_unlisted),
    ]
