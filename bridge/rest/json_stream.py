"""Parses a JSON list incrementally, item by item, so that its bytes are never held as a whole.

Bytes that are not UTF-8 and unpaired surrogates become lone surrogates in the text: validation rejects the
strings with them, and the rest can be used.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final

from bridge.errors import ApiError

MAX_ITEM_CHARACTERS: Final = 4 << 20
"""Size limit for an item of a list, or for an answer that is not a list."""
_LOOK_CHARACTERS: Final = 64 << 10
"""Characters to collect before looking for items."""
_INT64_DIGITS: Final = 20
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"\.|[eE][+-]?")
"""The end of a number that more digits may follow."""
_BEGINNINGS: Final = ("true", "false", "null", "NaN", "-Infinity", "Infinity")


class NoJson(ApiError):
    """The body is not JSON, or has an item that is too large. The message does not name the request."""


class Unfinished(NoJson):
    """The body ends before its JSON does, or is HTML. Another attempt may bring the whole answer."""


class _NoNumber:
    """Stands for NaN and for integers that no field can hold: validation rejects it for every field."""


def _integer(digits: str) -> object:
    # Python refuses to parse integers with thousands of digits.
    return int(digits) if len(digits) <= _INT64_DIGITS else _NoNumber()


_JSON: Final = json.JSONDecoder(
    parse_int=_integer,
    parse_constant=lambda _: _NoNumber(),
    strict=False,  # a line break within a name does no harm
)


class Items:
    """Takes the bytes of a body piece by piece; returns the items of its list, or its single value."""

    def __init__(self) -> None:
        self.is_list: bool | None = None
        """Whether the body is a list; None before its first character."""
        self._bytes = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text: list[str] = []
        self._size = 0
        self._look_at = _LOOK_CHARACTERS
        self._taken = 0
        """Characters consumed before `_text`."""
        self._is_first = True
        self._is_over = False

    def feed(self, piece: bytes | bytearray) -> list[Any]:
        """Return the items that this piece completes. Raises NoJson."""
        text = self._bytes.decode(piece)
        self._text.append(text)
        self._size += len(text)
        return self._items(final=False) if self._size >= self._look_at else []

    def end(self) -> list[Any]:
        """Return the remaining items. Raises NoJson; Unfinished if the body is incomplete or HTML."""
        self._text.append(self._bytes.decode(b"", final=True))
        items = self._items(final=True)
        if not self._is_over:
            size = self._taken + self._size
            raise Unfinished(f"incomplete JSON: it ends after {size:,} characters, before its JSON does")
        return items

    def _items(self, *, final: bool) -> list[Any]:
        text, at, items = "".join(self._text), 0, list[Any]()
        while (at := _after_space(text, at)) < len(text):
            if self._is_over:
                raise NoJson(f"invalid JSON: more after its end, at character {self._taken + at:,}")
            if self.is_list is None:
                if text[at] == "<":
                    raise Unfinished("a page of HTML, as of a load balancer")
                self.is_list = text[at] == "["
                at += self.is_list
            elif self._is_first and self.is_list and text[at] == "]":
                self._is_over = True
                at += 1
            elif found := self._item(text, at, final=final):
                self._is_first = False
                at = found[1]
                items.append(found[0])
            else:
                break
        self._text, self._size, self._taken = [text[at:]], len(text) - at, self._taken + at
        if self._size > MAX_ITEM_CHARACTERS:
            raise NoJson(f"invalid JSON: it has an item of more than {MAX_ITEM_CHARACTERS:,} characters")
        # Parse an incomplete item again only when its text has doubled.
        self._look_at = max(_LOOK_CHARACTERS, 2 * self._size)
        return items

    def _item(self, text: str, at: int, *, final: bool) -> tuple[Any, int] | None:
        """Return the item that begins at `at` and where the next may begin; None while it is incomplete."""
        if not self.is_list:
            found = self._value(text, at, final=True) if final else None
            self._is_over = found is not None
            return found
        found = self._value(text, at, final=final)
        if found is None:
            return None
        item, at = found[0], _after_space(text, found[1])
        if at == len(text) or _NUMBER.fullmatch(text, at):
            return None
        if text[at] not in ",]":
            raise NoJson(f"invalid JSON: Expecting ',' delimiter at character {self._taken + at:,}")
        self._is_over = text[at] == "]"
        return item, at + 1

    def _value(self, text: str, at: int, *, final: bool) -> tuple[Any, int] | None:
        try:
            return _JSON.raw_decode(text, at)
        except RecursionError:
            raise NoJson("invalid JSON: nested too deep") from None
        except json.JSONDecodeError as error:
            if not final or _is_cut(text, error):
                return None
            raise NoJson(f"invalid JSON: {error.msg} at character {self._taken + error.pos:,}") from None


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Return whether the error is at the end of the text, so that more text may cure it."""
    rest = text[error.pos :]
    return (
        error.msg.startswith("Unterminated string")
        or (error.msg.startswith("Invalid \\") and len(rest) <= len("\\uXXXX"))
        or not rest.strip(" \t\r\n")
        or _NUMBER.fullmatch(rest) is not None
        or any(word.startswith(rest) for word in _BEGINNINGS)
    )
