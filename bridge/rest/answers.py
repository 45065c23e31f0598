"""Validates answers leniently: an invalid item is left out, the others stay.

Items of lists and texts of `translations` can be left out. An error anywhere else makes the enclosing item
invalid, and at the top level the whole answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from bridge.errors import ApiError
from bridge.formatting import shortened
from bridge.rest.json_stream import Items, NoJson

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MAX_FLAWS: Final = 1_000
"""Flaws reported for one answer."""
MAX_WHY_CHARACTERS: Final = 300
"""Length of the reason of one flaw."""
MAX_SHOWN_CHARACTERS: Final = 30
"""Characters quoted from the provider's text in such a reason."""
MAX_ERRORS: Final = 100_000
"""Errors in a slice of a list, or in an answer that is no list: more of them fail the whole answer."""
_SLICE: Final = 1_000
"""Items of a long list that are validated at once."""
_MAP: Final = ("translations",)
"""The field whose entries may be left out."""
_Path: TypeAlias = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Flaw:
    """A part of an answer that is invalid and left out."""

    why: str
    """The reason with its place: `[3].translation: Input should be a valid string`."""
    id: int | None
    """The id of the enclosing item of the outermost list, if it can be read."""


@dataclass(frozen=True, slots=True)
class Answered(Generic[T_co]):
    """An answer. `content` is None after a 404 that the interface allows: the id is unknown."""

    content: T_co | None
    flaws: tuple[Flaw, ...] = ()
    """The first `MAX_FLAWS`; if there are more, a last one says how many."""
    more: int = 0
    """How many flaws are counted but not listed."""


class AnswerReader(Generic[T]):
    """Parses and validates one answer while it arrives. `asked` names the request in errors."""

    def __init__(self, asked: str, shape: TypeAdapter[T], most_bytes: int) -> None:
        self._asked = asked
        self._shape = shape
        self._left = self._most = most_bytes
        self._items = Items()
        self._flaws: list[Flaw] = []
        self._more = 0
        self._start = 0
        """Index in the answer's list of the first item of the current slice."""
        self._fresh: list[Any] = []
        """Items not validated yet."""
        self._content: list[Any] = []
        self._error: ApiError | None = None

    def feed(self, piece: bytes | bytearray) -> bool:
        """Take the next piece. Returns False if the answer is invalid: the rest is not needed."""
        self._left -= len(piece)
        try:
            if self._left < 0:
                raise ApiError(
                    f"{self._asked} answered more than {self._most:,} bytes, decompressed: "
                    "api.max_answer_bytes (BRIDGE_API__MAX_ANSWER_BYTES)"
                )
            self._take(self._items.feed(piece))
        except NoJson as error:
            self._error = self._named(error)
        except ApiError as error:
            self._error = error
        return self._error is None

    def answer(self) -> Answered[T]:
        """Return the complete answer. Raises ApiError; Unfinished if another attempt may bring it."""
        if self._error is not None:
            raise self._error
        try:
            self._take(self._items.end())
        except NoJson as error:
            raise self._named(error) from None
        if self._items.is_list:
            if self._fresh or not self._content:
                self._validate()
            content = cast(T, self._content)
        else:
            content = self._validated(self._fresh.pop())
        if self._more:
            self._flaws.append(Flaw(f"and {self._more:,} more", None))
        return Answered(content, tuple(self._flaws), self._more)

    def _named(self, error: NoJson) -> NoJson:
        return type(error)(f"{self._asked} answered with {error}")

    def _take(self, items: list[Any]) -> None:
        self._fresh += items
        while self._items.is_list and len(self._fresh) >= _SLICE:
            self._validate()

    def _validate(self) -> None:
        """Validate the next slice."""
        content, self._fresh = self._fresh[:_SLICE], self._fresh[_SLICE:]
        size = len(content)
        self._content += cast(list[Any], self._validated(content))
        self._start += size

    def _validated(self, content: Any) -> T:
        try:
            return self._shape.validate_python(content)
        except ValidationError as error:
            self._leave_out(content, error)
            return self._validated(content)

    def _leave_out(self, content: Any, error: ValidationError) -> None:
        """Take what is invalid out of the content. Raises ApiError if that is the whole."""
        if error.error_count() > MAX_ERRORS:
            raise ApiError(f"{self._asked} answered with {error.error_count():,} errors") from None
        invalid: dict[_Path, str] = {}
        hopeless: list[str] = []
        for found in error.errors(include_url=False):
            path = found["loc"]
            if path[-3:-2] == _MAP:  # the error of a key: in its place, pydantic replaces what is not Unicode
                path = (*path[:-2], found["input"], path[-1])
            why = _explained(path, found["msg"], self._start)
            ends = [n for n, x in enumerate(path, 1) if isinstance(x, int) or path[n - 2 : n - 1] == _MAP]
            if not ends:
                hopeless.append(why)
            elif _has(content, path[: ends[-1]]):
                invalid.setdefault(path[: ends[-1]], why)
        if hopeless or not invalid:
            more = f", and {len(hopeless) - 1} more" if len(hopeless) > 1 else ""
            why = hopeless[0] if hopeless else str(error)
            raise ApiError(f"{self._asked} answered with an unexpected shape: {why}{more}") from None
        # An item that is left out takes all that is invalid within it along.
        outermost = [x for x in invalid if not any(x[:n] in invalid for n in range(1, len(x)))]
        for path in outermost:
            if len(self._flaws) < MAX_FLAWS:
                self._flaws.append(Flaw(invalid[path], _id_of_item(content, path)))
            else:
                self._more += 1
        for path in reversed(outermost):
            del reduce(getitem, path[:-1], content)[path[-1]]


def _has(content: Any, path: _Path) -> bool:
    """Return whether there is such an item: the value of an invalid key has no separate place."""
    return isinstance(path[-1], int) or path[-1] in reduce(getitem, path[:-1], content)


def _explained(path: _Path, message: str, start: int) -> str:
    """Return place and message of an error: `[3].market.id: Input should be a valid integer`.

    `start` is the index of the first item.
    """
    parts = (
        f"[{part if n else start + part}]" if isinstance(part, int) else f".{shown(part)}"
        for n, part in enumerate(path)
    )
    where = "".join(parts).removeprefix(".") or "the whole"
    return shortened(f"{where}: {message}", MAX_WHY_CHARACTERS)


def shown(text: str) -> str:
    """Return the beginning of the provider's text in printable form."""
    beginning = text[:MAX_SHOWN_CHARACTERS]
    return beginning if beginning.isprintable() else ascii(beginning)[1:-1]


def _id_of_item(content: Any, path: _Path) -> int | None:
    """Return the id of the item of the outermost list on a path: of an entity, or of a market."""
    index = next((n for n, part in enumerate(path, 1) if isinstance(part, int)), None)
    if index is None or not isinstance(item := reduce(getitem, path[:index], content), dict):
        return None
    for of in (item, item.get("market"), item.get("marketTranslations")):
        number = of.get("id") if isinstance(of, dict) else None
        if type(number) is int and -(2**63) <= number < 2**63:
            return number
    return None
