"""Validates answers leniently: an invalid item is left out, the others stay.

Items of lists and entries of maps can be left out. An error anywhere else makes the enclosing item invalid,
and at the top level the whole answer.
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

MAX_FLAWS: Final = 1_000
"""Flaws reported for one answer."""
MAX_WHY_CHARACTERS: Final = 300
"""Length of the reason of one flaw."""
MAX_SHOWN_CHARACTERS: Final = 30
"""Characters quoted from the provider's text in such a reason."""
_SLICE: Final = 1_000
"""Items of a long list that are validated at once."""


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


class _Flaws:
    """The flaws of one answer, and the current place of the validation."""

    def __init__(self) -> None:
        self.found: list[Flaw] = []
        self.more = 0
        self.start = 0
        """Index in the answer's list of the first item of the current slice."""
        self._path: list[int | str] = []
        self._id: int | None = None

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Record flaws found in this context under the field `name`."""
        self._path.append(name)
        try:
            yield
        finally:
            self._path.pop()

    @contextmanager
    def leaving_out(self, name: str | None, place: int | str, item: Any) -> Iterator[None]:
        """Replace all flaws within an invalid item by a single one for the item."""
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
            if len(self.found) < MAX_FLAWS:
                # The error's own path begins with the index in the list of one (or the key) validated here.
                self.found.append(Flaw(_explained(error, self._path, skip=1), self._id))
            else:
                self.more += 1
        finally:
            del self._path[depth:]
            self._id = id_


def _leniently(value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Validate a list or map as a whole; with `_Flaws` as context, item by item."""
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
"""A list or map that leaves out its invalid items."""
Part = Annotated[T, WrapValidator(_within)]
"""A field that contains such lists or maps: its name becomes part of their places."""


class AnswerReader(Generic[T]):
    """Parses and validates one answer while it arrives. `asked` names the request in errors."""

    def __init__(self, asked: str, shape: TypeAdapter[T], most_bytes: int) -> None:
        self._asked = asked
        self._shape = shape
        self._left = self._most = most_bytes
        self._items = Items()
        self._flaws = _Flaws()
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
            self._error = ApiError(f"{self._asked} answered with invalid JSON: {error}")
        except ApiError as error:
            self._error = error
        return self._error is None

    def answer(self) -> Answered[T]:
        """Return the complete answer. Raises ApiError; Unfinished if its end is missing."""
        if self._error is not None:
            raise self._error
        try:
            self._take(self._items.end())
        except Unfinished as error:
            raise Unfinished(f"{self._asked} answered with incomplete JSON: {error}") from None
        except NoJson as error:
            raise ApiError(f"{self._asked} answered with invalid JSON: {error}") from None
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
        """Validate the next slice."""
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
            raise ApiError(
                f"{self._asked} answered with an unexpected shape: {_explained(error)}{more}"
            ) from None


def _explained(error: ValidationError, path: Sequence[int | str] = (), skip: int = 0) -> str:
    """Return place and message of the first error: `[3].market.id: Input should be a valid integer`."""
    first = error.errors(include_url=False, include_input=False)[0]
    parts = (
        f"[{part}]" if isinstance(part, int) else f".{shown(part)}" for part in (*path, *first["loc"][skip:])
    )
    where = "".join(parts).removeprefix(".") or "the whole"
    return shortened(f"{where}: {first['msg']}", MAX_WHY_CHARACTERS)


def shown(text: str) -> str:
    """Return the beginning of the provider's text in printable form."""
    beginning = text[:MAX_SHOWN_CHARACTERS]
    return beginning if beginning.isprintable() else ascii(beginning)[1:-1]


def _id_of(item: Any) -> int | None:
    """Return the id of an entity, or of a market with its selections."""
    if not isinstance(item, dict):
        return None
    for of in (item, item.get("market"), item.get("marketTranslations")):
        number = of.get("id") if isinstance(of, dict) else None
        if type(number) is int and -(2**63) <= number < 2**63:
            return number
    return None
