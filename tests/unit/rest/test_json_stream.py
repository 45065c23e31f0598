"""JSON that is read while it comes, whatever pieces it comes in."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.rest import json_stream
from bridge.rest.json_stream import MAX_ITEM_CHARACTERS, Items, NoJson, Unfinished

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


def read(body: bytes, cuts: list[int]) -> tuple[bool | None, list[Any]]:
    """What comes out of a body that comes in pieces."""
    items, found = Items(), list[Any]()
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    for start, end in pairwise(places):
        found += items.feed(body[start:end])
    found += items.end()
    return items.is_list, found


@given(
    VALUES,
    st.lists(st.integers(0, 200)),
    st.booleans(),
    st.sampled_from([None, 1]),
    st.sampled_from([1, 7, 1000]),
)
def test_pieces_make_no_difference(
    value: Any, cuts: list[int], ascii_: bool, indent: int | None, look: int
) -> None:
    body = json.dumps(value, ensure_ascii=ascii_, indent=indent).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_LOOK_CHARACTERS", look)
        assert read(body, cuts) == (isinstance(value, list), value if isinstance(value, list) else [value])


@given(VALUES, st.integers(0, 300), st.sampled_from([1, 7, 1000]))
def test_a_beginning_is_no_whole(value: Any, length: int, look: int) -> None:
    body = json.dumps([value]).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_LOOK_CHARACTERS", look)
        with pytest.raises(Unfinished):
            read(body[: min(length, len(body) - 1)], [3, 9])


@given(st.binary(max_size=60), st.sampled_from([b"", b"[", b'[{"a":', b'["']), st.lists(st.integers(0, 60)))
def test_any_bytes_end_well(body: bytes, before: bytes, cuts: list[int]) -> None:
    with suppress(NoJson):
        read(before + body, cuts)


def test_items_come_before_the_end() -> None:
    items = Items()
    items.feed(b"[")
    assert 90_000 < sum(len(items.feed(b'{"id": 1}, ' * 1000)) for _ in range(100)) < 100_000


def test_an_item_has_a_largest_size() -> None:
    items = Items()
    items.feed(b'["' + b"x" * (MAX_ITEM_CHARACTERS - 2))
    with pytest.raises(NoJson, match="it has an item of more than 4,194,304 characters"):
        items.feed(b"x" * MAX_ITEM_CHARACTERS)


def test_a_large_item_in_small_pieces_is_looked_at_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    items = Items()
    look = Mock(wraps=items._items)
    monkeypatch.setattr(items, "_items", look)
    for piece in [b'["', *[b"x" * 64] * (1 << 15), b'"]']:
        items.feed(piece)
    assert (len(items.end()), look.call_count < 10) == (1, True)


def test_a_mark_of_the_byte_order_is_let_pass() -> None:
    assert read(b"\xef\xbb\xbf[1]", [1, 2]) == (True, [1])
