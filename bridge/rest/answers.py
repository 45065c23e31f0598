"""Answers that leave out what is wrong in them: a bad item does not take away the others.

What can be left out is an item of a list and an entry of a map. What is wrong anywhere else is wrong with
what it is in, and in the end with the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar, cast

from pydantic import TypeAdapter, ValidationError, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from bridge.errors import ApiError
from bridge.formatting import shortened
from bridge.rest.json_stream import Items, NoJson, Unfinished

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MOST_FLAWS: Final = 1_000
"""So many are told of one answer."""
MOST_WHY: Final = 300
"""Characters of what is said of one of them."""
MOST_SHOWN: Final = 30
"""Characters of what the provider wrote, in such a text."""
_SLICE: Final = 1_000
"""Of a long list so much is checked at once."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """What of an answer cannot be used, and is left out of it."""

    why: str
    """With its place: `[3].translation: Input should be a valid string`."""
    id: int | None
    """Of the item of the answer's outermost list that it is in, where that can be read."""


@dataclass(frozen=True, slots=True)
class Answered(Generic[T_co]):
    """An answer. `content` is None where the provider knows nothing of what was asked, and may (404)."""

    content: T_co | None
    flaws: tuple[Flaw, ...] = ()
    """The first of them; where there are more, a last one that says how many."""
    more: int = 0
    """Of how many nothing else is told."""


class _Flaws:
    """Those of one answer, and where in it the validation is."""

    def __init__(self) -> None:
        self.found: list[Flaw] = []
        self.more = 0
        self.start = 0
        """Which item of the answer's list is the first that is validated."""
        self._path: list[int | str] = []
        self._id: int | None = None

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """What is found meanwhile is in this field."""
        self._path.append(name)
        try:
            yield
        finally:
            self._path.pop()

    @contextmanager
    def leaving_out(self, name: str | None, place: int | str, item: Any) -> Iterator[None]:
        """What is wrong with this item of that field is one flaw, whatever was found within it."""
        found, more, depth, id_ = len(self.found), self.more, len(self._path), self._id
        if name is not None:
            self._path.append(name)
        if isinstance(place, int) and not any(isinstance(part, int) for part in self._path):
            self._id = _id_of(item)
        self._path.append(place + self.start if isinstance(place, int) and not self._path else place)
        try:
            yield
        except ValidationError as error:
            del self.found[found:]
            self.more = more
            if len(self.found) < MOST_FLAWS:
                # Its own place begins with that in the list of one, or the map, that it was validated in.
                self.found.append(Flaw(_explained(error, self._path, skip=1), self._id))
            else:
                self.more += 1
        finally:
            del self._path[depth:]
            self._id = id_


def _leniently(value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """All of a list or map at once, or, where flaws may be found, one after the other."""
    flaws: _Flaws | None = info.context
    if flaws is None or not isinstance(value, list | dict):
        return validate(value)
    kept = validate(type(value)())
    if isinstance(value, list):
        for place, item in enumerate(value):
            with flaws.leaving_out(info.field_name, place, item):
                kept += validate([item])
    else:
        for key, entry in value.items():
            with flaws.leaving_out(info.field_name, key, entry):
                kept |= validate({key: entry})
    return kept


def _within(value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    flaws: _Flaws | None = info.context
    if flaws is None:
        return validate(value)
    with flaws.within(info.field_name or ""):
        return validate(value)


Lenient = Annotated[T, WrapValidator(_leniently)]
"""A list or map that leaves out what is wrong in it."""
Part = Annotated[T, WrapValidator(_within)]
"""A field with such lists or maps in it: it is named where something is left out."""


class Reader(Generic[T]):
    """Reads one answer while it comes. `asked` is the question, for whoever is told what is wrong."""

    def __init__(self, asked: str, shape: TypeAdapter[T], most_bytes: int) -> None:
        self._asked = asked
        self._shape = shape
        self._left = self._most = most_bytes
        self._items = Items()
        self._flaws = _Flaws()
        self._fresh: list[Any] = []
        """Items that are not validated yet."""
        self._content: list[Any] = []
        self._error: ApiError | None = None

    def feed(self, piece: bytes | bytearray) -> bool:
        """Take what comes next. False when no more is needed, because it cannot become an answer."""
        self._left -= len(piece)
        try:
            if self._left < 0:
                raise ApiError(
                    f"{self._asked} answered more than {self._most:,} bytes, unpacked: api.max_answer_bytes "
                    "(BRIDGE_API__MAX_ANSWER_BYTES)"
                )
            self._take(self._items.feed(piece))
        except NoJson as error:
            self._error = ApiError(f"{self._asked} answered what is no JSON: {error}")
        except ApiError as error:
            self._error = error
        return self._error is None

    def answer(self) -> Answered[T]:
        """What it is, when all has come. Raises ApiError, Unfinished where the end is missing."""
        if self._error is not None:
            raise self._error
        try:
            self._take(self._items.end())
        except Unfinished as error:
            raise Unfinished(f"{self._asked} answered half of a JSON text: {error}") from None
        except NoJson as error:
            raise ApiError(f"{self._asked} answered what is no JSON: {error}") from None
        if self._items.is_list:
            if self._fresh or not self._content:
                self._validate()
            content = cast(T, self._content)
        else:
            content = self._validated(self._fresh.pop())
        flaws, more = self._flaws.found, self._flaws.more
        if more:
            flaws.append(Flaw(f"and {more:,} more", None))
        return Answered(content, tuple(flaws), more)

    def _take(self, items: list[Any]) -> None:
        self._fresh += items
        while self._items.is_list and len(self._fresh) >= _SLICE:
            self._validate()

    def _validate(self) -> None:
        """The next slice."""
        content, self._fresh = self._fresh[:_SLICE], self._fresh[_SLICE:]
        self._content += cast(list[Any], self._validated(content))
        self._flaws.start += len(content)

    def _validated(self, content: Any) -> T:
        try:
            try:
                return self._shape.validate_python(content)
            except ValidationError:
                return self._shape.validate_python(content, context=self._flaws)
        except ValidationError as error:
            more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
            raise ApiError(f"{self._asked} answered another shape: {_explained(error)}{more}") from None


def _explained(error: ValidationError, path: Sequence[int | str] = (), skip: int = 0) -> str:
    """`[3].market.id: Input should be a valid integer`: where in an answer what is wrong, in short."""
    first = error.errors(include_url=False, include_input=False)[0]
    parts = (
        f"[{part}]" if isinstance(part, int) else f".{shown(part)}" for part in (*path, *first["loc"][skip:])
    )
    where = "".join(parts).removeprefix(".") or "the whole"
    return shortened(f"{where}: {first['msg']}", MOST_WHY)


def shown(text: str) -> str:
    """The beginning of what the provider wrote, as it can be printed."""
    beginning = text[:MOST_SHOWN]
    return beginning if beginning.isprintable() else ascii(beginning)[1:-1]


def _id_of(item: Any) -> int | None:
    """Of an entity, or a market with its selections."""
    if not isinstance(item, dict):
        return None
    for of in (item, item.get("market"), item.get("marketTranslations")):
        number = of.get("id") if isinstance(of, dict) else None
        if type(number) is int and -(2**63) <= number < 2**63:
            return number
    return None
