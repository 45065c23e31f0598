"""The currencies: the provider's list of active ones, and the precision of others that bets use.

Interface, "Currency exchange".
"""

from __future__ import annotations

from typing import Final

from bridge.avro.codec import Codec
from bridge.config import ApiSettings
from bridge.errors import ApiError, Forbidden
from bridge.snapshots.gather import Asks, Progress
from bridge.snapshots.outcome import Known, Outcome
from bridge.snapshots.records import Counts, Currency, CurrencyType
from bridge.snapshots.requests import ListedCurrency, Questions
from bridge.snapshots.wants import Estimate

TYPES: Final[dict[int, CurrencyType]] = {1: "Fiat", 2: "Crypto", 3: "Custom"}
"""Currency type: the provider's number → the symbol in Avro."""


class Currencies:
    """One run of the job. `codec` reads the records of its topic."""

    def __init__(self, settings: ApiSettings, codec: Codec, known: Known) -> None:
        self._questions = Questions(settings)
        self._mentions = known.kept or known.mentions
        self._full = known.full
        self._present = {key: Currency.from_avro(codec.decode(value)) for key, value in known.present.items()}
        self._found: dict[bytes, Currency] = {}
        self._notes: list[str] = []
        self._forbidden: set[str] = set()

    async def run(self, asks: Asks, progress: Progress = lambda what, done, total: None) -> Outcome:
        """Ask the provider. Raises ApiError and AuthError; nothing is published then."""
        whole = await self._list(asks, progress)
        unlisted = self.unlisted(whole)
        for index, symbol in enumerate(unlisted, 1):
            await self._precision(asks, symbol)
            progress("currencies by symbol", index, len(unlisted))
        gone = {
            key
            for key, currency in self._present.items()
            # One that was never listed is not missing from the list. Only a full run has read all bets that
            # may use the others.
            if self._full and not self._forbidden and key not in self._found and currency.type != "Unknown"
        }
        written = {key: new for key, new in self._found.items() if self._present.get(key) != new}
        return Outcome(
            written=dict(written),
            removed=gone,
            counts=self._count(written, gone),
            forbidden=tuple(sorted(self._forbidden)),
            notes=self._notes,
        )

    def unlisted(self, whole: bool = True) -> list[str]:
        """Symbols that bets use and the list lacks, as far as they are to be asked about.

        `whole` says that the list was read to its end, so that what it lacks is not listed.
        """

        def is_asked(symbol: str) -> bool:
            known = self._present.get(symbol.encode())
            if known is None:
                return True
            return self._full if known.type == "Unknown" else whole

        missing = {symbol for symbol in self._mentions.currencies if symbol.encode() not in self._found}
        return sorted(filter(is_asked, missing))

    async def _list(self, asks: Asks, progress: Progress) -> bool:
        """Whether the whole list was read: all, then each type, in case the first is not all of it."""
        types = [None, *TYPES]
        for index, type_ in enumerate(types, 1):
            request = self._questions.active_currencies(type_)
            try:
                found = (await asks.ask(request)).content
            except Forbidden:
                self._forbidden.add(request.endpoint)
                return False
            for currency in found or ():
                self._take(currency)
            progress("active currencies", index, len(types))
        if not self._found and any(known.type != "Unknown" for known in self._present.values()):
            endpoint = self._questions.active_currencies().endpoint
            raise ApiError(
                f"GET {endpoint} answered an empty list, which is not believed: there were some before"
            )
        return True

    def _take(self, listed: ListedCurrency) -> None:
        symbol, type_ = listed["symbol"], listed["type"]
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
        if note not in self._notes:
            self._notes.append(note)

    async def _precision(self, asks: Asks, symbol: str) -> None:
        request = self._questions.currency_precision(symbol)
        if request.endpoint in self._forbidden:
            return
        try:
            found = (await asks.ask(request)).content
        except Forbidden:
            self._forbidden.add(request.endpoint)
            return
        assert found is not None  # the interface has no 404 there
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


def estimate(job: Currencies) -> list[Estimate]:
    """What a run would ask, before it has asked anything. Retries are not in it."""
    lists = len(TYPES) + 1
    return [
        Estimate("/api/CurrencyExchange/active-currencies", lists, lists),
        # Only those that the list lacks.
        Estimate("/api/CurrencyExchange/currency-precision", 0, len(job.unlisted())),
    ]
