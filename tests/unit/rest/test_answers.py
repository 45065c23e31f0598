"""The invalid parts of an answer are left out and reported; the rest is used."""

from __future__ import annotations

import json
import re
import tracemalloc
from typing import Any

import pytest
from pydantic import TypeAdapter

from bridge.errors import ApiError
from bridge.rest.answers import MAX_FLAWS, MAX_WHY_CHARACTERS, Answered, AnswerReader, Flaw
from bridge.rest.endpoints import Questions, Request
from bridge.rest.json_stream import NoJson, Unfinished
from tests.unit.snapshots.provider import answered, api

QUESTIONS = Questions(api())
ITEM = {"id": 1, "language": "en", "translation": "Football"}
ENTITY: dict[str, Any] = {"id": 7, "translations": {"sv": "Fotboll", "en": "Football"}}
SPORTS = QUESTIONS.listed("sport", "en")
STRING = "Input should be a valid string"
CHARACTERS = f"{STRING}, unable to parse raw data as a unicode string"
INTEGER = "Input should be a valid integer"
OBJECT = "Input should be a valid dictionary"
HUGE = "123456789"
"""Replaced by 5,001 digits, which Python itself does not write."""


def read(request: Request[Any], answer: object) -> tuple[Any, list[tuple[str, int | None]]]:
    """The content of an answer, and reason and id of each flaw."""
    found = answered(request, json.dumps(answer).encode())
    assert found.more == 0
    return found.content, [(flaw.why, flaw.id) for flaw in found.flaws]


@pytest.mark.parametrize(
    ("item", "why", "number"),
    [
        ({**ITEM, "id": 5, "translation": None}, f"translation: {STRING}", 5),
        ({**ITEM, "id": 5, "translation": "half \ud83d"}, f"translation: {CHARACTERS}", 5),
        ({**ITEM, "id": 5, "language": "\udc00"}, f"language: {CHARACTERS}", 5),
        (
            {**ITEM, "translation": "x" * 10_001},
            "translation: String should have at most 10000 characters",
            1,
        ),
        ({"id": -(2**63), "language": "en"}, "translation: Field required", -(2**63)),
        ({**ITEM, "id": "5"}, f"id: {INTEGER}", None),
        ({**ITEM, "id": True}, f"id: {INTEGER}", None),
        ({**ITEM, "id": 2**63}, "id: Input should be less than or equal to 9223372036854775807", None),
        ({**ITEM, "id": int(HUGE)}, f"id: {INTEGER}", None),
        ({**ITEM, "id": float("nan")}, f"id: {INTEGER}", None),
        ({**ITEM, "translation": float("inf")}, f"translation: {STRING}", 1),
        ("text", OBJECT, None),
        (None, OBJECT, None),
        ([ITEM], OBJECT, None),
    ],
)
@pytest.mark.parametrize("place", [0, 999, 1000, 1499])
def test_an_invalid_item_of_a_list_is_left_out(
    item: object, why: str, number: int | None, place: int
) -> None:
    items = [json.dumps(ITEM)] * 1500
    items[place] = json.dumps(item).replace(HUGE, "1" * 5001)
    found = answered(SPORTS, f"[{','.join(items)}]".encode())
    separator = ": " if why == OBJECT else "."
    assert found == Answered([ITEM] * 1499, (Flaw(f"[{place}]{separator}{why}", number),))


def test_bytes_that_are_no_utf8_cost_their_item() -> None:
    good = json.dumps(ITEM).encode()
    found = answered(SPORTS, b"[" + good + b"," + good.replace(b"Foot", b"F\xf6\xf6t") + b"," + good + b"]")
    assert found == Answered([ITEM, ITEM], (Flaw(f"[1].translation: {CHARACTERS}", 1),))


PARTS: dict[str, Any] = dict.fromkeys(("eventTranslation", "sport", "region"), ENTITY)
GOOD = {"marketTypeId": 1, "market": ITEM, "selections": [ITEM]}
BAD = {"marketTypeId": 1, "market": {**ITEM, "id": 4}, "selections": [{**ITEM, "id": None}, ITEM, 7]}
WORSE = {"marketTypeId": 1, "market": {**ITEM, "id": 5, "translation": None}, "selections": [None]}
LONG = f"it begins with '\\x1b[X{'A' * 27}' and has 1,048,579 characters, 100 are allowed"
NAMELESS = {"marketTypeId": 1, "market": {"language": "en"}, "selections": [ITEM]}


def texts(**translations: object) -> dict[str, Any]:
    return {"id": 7, "translations": translations}


@pytest.mark.parametrize(
    ("request_", "answer", "content", "flaws"),
    [
        pytest.param(
            QUESTIONS.single("sport", 7),
            texts(en="Football", de=None, sv="\udc00"),
            texts(en="Football"),
            [(f"translations.de: {STRING}", None), (f"translations.sv: {CHARACTERS}", None)],
            id="texts of an entity",
        ),
        pytest.param(
            QUESTIONS.single("sport", 7),
            texts(**{chr(0xD83D): 5, chr(0xD83E): "x", "[key]": "kept", "": "kept", "a b/?": "kept"}),
            texts(**{"[key]": "kept", "": "kept", "a b/?": "kept"}),
            [(f"translations.\\ud83{x}.[key]: {CHARACTERS}", None) for x in "de"],
            id="keys that look alike, also with an invalid text",
        ),
        pytest.param(
            QUESTIONS.single("sport", 7),
            texts(**{"k" * 2**20: 5}),
            texts(),
            [(f"translations.{'k' * 30}.[key]: String should have at most 10000 characters", None)],
            id="a key of a megabyte, which is not shown whole",
        ),
        pytest.param(
            QUESTIONS.event(7),
            {
                **PARTS,
                "league": texts(en="League", sv=[]),
                "competitors": [ENTITY, {"id": 8, "translations": None}, texts(en=5, sv="Nio") | {"id": 9}],
            },
            {**PARTS, "league": texts(en="League"), "competitors": [ENTITY, texts(sv="Nio") | {"id": 9}]},
            [
                (f"league.translations.sv: {STRING}", None),
                (f"competitors[1].translations: {OBJECT}", 8),
                (f"competitors[2].translations.en: {STRING}", 9),
            ],
            id="a competitor of an event, and a text of its league",
        ),
        pytest.param(
            QUESTIONS.markets(7, "en"),
            [GOOD, BAD, WORSE, NAMELESS],
            [GOOD, {**BAD, "selections": [ITEM]}],
            [
                (f"[1].selections[0].id: {INTEGER}", 4),
                (f"[1].selections[2]: {OBJECT}", 4),
                (f"[2].market.translation: {STRING}", 5),
                ("[3].market.id: Field required", None),
            ],
            id="selections; a market without a name goes as a whole, and takes no id of its selections",
        ),
        pytest.param(
            QUESTIONS.all_markets(7),
            [
                {
                    "marketTypeId": 1,
                    "marketTranslations": texts(en="Win", sv=1),
                    "selections": [texts(en="Home", sv=1), {"id": 6}],
                },
                {"marketTypeId": 1, "selections": [ENTITY]},
            ],
            [{"marketTypeId": 1, "marketTranslations": texts(en="Win"), "selections": [texts(en="Home")]}],
            [
                (f"[0].marketTranslations.translations.sv: {STRING}", 7),
                (f"[0].selections[0].translations.sv: {STRING}", 7),
                ("[0].selections[1].translations: Field required", 7),
                ("[1].marketTranslations: Field required", None),
            ],
            id="the same in all languages",
        ),
        pytest.param(
            QUESTIONS.active_currencies(),
            [
                {"type": 1, "precision": -(2**31)},
                {"symbol": "\x1b[X" + "A" * 2**20, "type": 1, "precision": 2},
                {"symbol": "A" * 100, "type": 9, "precision": 2**31 - 1},
                {"symbol": "EUR", "type": 1, "precision": 2**31},
                {"symbol": "EUR", "type": 1, "precision": -(2**31) - 1},
            ],
            [
                {"symbol": None, "type": 1, "precision": -(2**31)},
                {"symbol": "A" * 100, "type": 9, "precision": 2**31 - 1},
            ],
            [
                (f"[1].symbol: {LONG}", None),
                ("[3].precision: Input should be less than or equal to 2147483647", None),
                ("[4].precision: Input should be greater than or equal to -2147483648", None),
            ],
            id="currencies, of which a symbol may be missing",
        ),
    ],
)
def test_what_is_invalid_is_left_out_and_reported(
    request_: Request[Any], answer: object, content: object, flaws: list[tuple[str, int | None]]
) -> None:
    assert read(request_, answer) == (content, flaws)


@pytest.mark.parametrize(
    ("request_", "body", "content"),
    [
        (SPORTS, b"[]", []),
        (SPORTS, b" [ ] ", []),
        (SPORTS, b'[{"id":9,"language":"en","translation":"Football","id":1}]', [ITEM]),
        (
            SPORTS,
            b'[{"id":1,"language":"en","translation":"\\ud83d\\ude00 \xf0\x9f\x98\x80"}]',
            [{**ITEM, "translation": "😀 😀"}],
        ),
        (QUESTIONS.currency_precision("X"), b'{"precision": -3}', {"precision": -3}),
        (QUESTIONS.single("sport", 7), b'{"id": 7, "icon": null, "translations": {}}', texts()),
    ],
)
def test_a_valid_answer_is_read(request_: Request[Any], body: bytes, content: object) -> None:
    assert answered(request_, body) == Answered(content)


def test_the_reason_of_a_flaw_is_cut() -> None:
    shape: Any = int
    for _ in range(10):
        shape = dict[str, shape]
    answer: Any = "x"
    for _ in range(9):
        answer = {"k" * 100: answer}
    answer = {"translations": answer}
    reader = AnswerReader("GET /", TypeAdapter[Any](shape), 10_000)
    reader.feed(json.dumps(answer).encode())
    [flaw] = reader.answer().flaws
    assert len(flaw.why) == MAX_WHY_CHARACTERS + 1  # the ellipsis
    assert flaw.why.endswith("…")


def test_many_flaws_are_counted() -> None:
    bad = [{**ITEM, "id": number, "translation": None} for number in range(2 * MAX_FLAWS + 500)]
    found = answered(SPORTS, json.dumps([*bad, ITEM]).encode())
    assert found.content == [ITEM]
    assert [flaw.id for flaw in found.flaws] == [*range(MAX_FLAWS), None]
    assert (found.flaws[-1].why, found.more) == ("and 1,500 more", 1500)


EVENT = {**PARTS, "league": ENTITY, "competitors": [ENTITY]}
NO_NUMBER = {"id": "long-story", "translations": None}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({**EVENT, "league": None}, "league: "),
        ({**EVENT, "competitors": None}, "competitors: "),
        ({**EVENT, "sport": {"id": 7.0, "translations": {}}}, "sport.id: "),
        ({**EVENT, "sport": {"id": 7}}, "sport.translations: "),
        ({**EVENT, "sport": NO_NUMBER}, f"sport.id: {INTEGER}, and 1 more"),
        ([EVENT], "the whole: "),
        (None, "the whole: "),
    ],
)
def test_an_unexpected_shape_is_named_by_its_place(answer: object, why: str) -> None:
    asked = "GET /api/translations/all/event/7 answered with"
    with pytest.raises(ApiError, match=f"^{asked} an unexpected shape: {re.escape(why)}") as caught:
        read(QUESTIONS.event(7), answer)
    assert "long-story" not in str(caught.value)
    with pytest.raises(ApiError, match=f"^{asked} 100,001 errors"):
        read(QUESTIONS.event(7), {**EVENT, "competitors": [0] * 100_001})


UNFINISHED = [b"", b"  ", b"[", b'[{"id": 1', b'[{"id":1}', b'[{"id":1},', b'{"id": tr', b'["\\ud8']
INVALID = [b"[}", b"[,]", b"[1,]", b"[1 2]", b"[] x", b"{} {}", b'{"a" 1}', b"nope", b"[1]]"]
DEEP = [b"[" * 10**6, b'[{"a":' + b"[" * 10**6, b'{"a":' * 10**5]


@pytest.mark.parametrize(
    ("bodies", "why", "error"),
    [
        (UNFINISHED, "incomplete JSON: it ends after ", Unfinished),
        (INVALID, "invalid JSON: ", NoJson),
        (DEEP, "invalid JSON: nested too deep$", NoJson),
    ],
)
def test_what_is_no_json_names_the_request(bodies: list[bytes], why: str, error: type[ApiError]) -> None:
    for body in bodies:
        with pytest.raises(ApiError, match=f"^GET /api/translations/en/sports answered with {why}") as caught:
            answered(SPORTS, body)
        assert type(caught.value) is error


def test_an_answer_that_is_too_large_names_the_setting() -> None:
    reader = SPORTS.reader(100)
    assert reader.feed(b"[" + b" " * 99)
    assert not reader.feed(b"]")
    with pytest.raises(
        ApiError, match=r"sports answered more than 100 bytes, .*\(BRIDGE_API__MAX_ANSWER_BYTES\)"
    ):
        reader.answer()


# A large answer is read with little memory: what it keeps, and hardly more.


COMPETITORS = 12_000
PIECE = 64 << 10
MOST_ABOVE = 1 << 20
"""Bytes of memory above what is kept in the end."""
NAME = "Αθλητικός Σύλλογος Α "


def body() -> bytes:
    """A list of competitors, each character of their names an escape."""
    escaped = NAME.encode("ascii", "backslashreplace").decode()
    item = '{"id":%d,"language":"el","translation":"' + escaped + '%d"}'
    return f"[{','.join(item % (number, number) for number in range(COMPETITORS))}]".encode()


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_long_list_takes_the_memory_of_what_is_kept(spoilt: bool) -> None:
    sent = body()
    if spoilt:
        sent = sent.replace(b"\\u0391 77", b"\\ud83d 77")  # half a pair, in a hundred of them
    assert len(sent) > 1.5 * MOST_ABOVE
    reader = QUESTIONS.listed("competitor", "el").reader(64 << 20)
    tracemalloc.start()
    try:
        for start in range(0, len(sent), PIECE):
            assert reader.feed(sent[start : start + PIECE])
        found = reader.answer()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.content is not None
    assert len(found.content) + len(found.flaws) == COMPETITORS
    assert bool(found.flaws) == spoilt
    assert peak - kept < MOST_ABOVE
