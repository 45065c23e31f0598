"""What is wrong in an answer is left out of it, and told; the rest is used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from bridge.errors import ApiError
from bridge.rest.answers import MAX_FLAWS, MAX_WHY_CHARACTERS, Answered, AnswerReader, Flaw
from bridge.rest.endpoints import Questions, Request
from bridge.rest.json_stream import Unfinished
from tests.unit.snapshots.provider import api

QUESTIONS = Questions(api())
ITEM = {"id": 1, "language": "en", "translation": "Football"}
ENTITY: dict[str, Any] = {"id": 7, "translations": {"sv": "Fotboll", "en": "Football"}}
SPORTS = QUESTIONS.listed("sport", "en")
STRING = "Input should be a valid string"
CHARACTERS = f"{STRING}, unable to parse raw data as a unicode string"
INTEGER = "Input should be a valid integer"
OBJECT = "Input should be a valid dictionary"


def read(request: Request[Any], answer: object) -> tuple[Any, list[tuple[str, int | None]]]:
    """What is used of an answer, and what is told of the rest."""
    found = request.read(json.dumps(answer).encode())
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
        ({**ITEM, "id": 10**5000}, f"id: {INTEGER}", None),
        ({**ITEM, "id": float("nan")}, f"id: {INTEGER}", None),
        ({**ITEM, "translation": float("inf")}, f"translation: {STRING}", 1),
        ("text", OBJECT, None),
        (None, OBJECT, None),
        ([ITEM], OBJECT, None),
    ],
)
@pytest.mark.parametrize("place", [0, 999, 1000, 1499])
def test_a_bad_item_of_a_list_is_left_out(item: object, why: str, number: int | None, place: int) -> None:
    """Wherever it is; of all others nothing is missing."""
    answer: list[object] = [ITEM] * 1500
    answer[place] = item
    where = f"[{place}]" + ("" if why == OBJECT else ".")
    text = json.dumps(answer[:place]), json.dumps(answer[place + 1 :])
    middle = _dumped(item)
    body = ", ".join(part for part in (text[0][1:-1], middle, text[1][1:-1]) if part)
    found = SPORTS.read(f"[{body}]".encode())
    colon = ": " if why == OBJECT else ""
    assert found == Answered([ITEM] * 1499, (Flaw(f"{where}{colon}{why}", number),))


def _dumped(item: object) -> str:
    """As JSON; Python itself writes no integer of thousands of digits."""
    huge = isinstance(item, dict) and item.get("id") == 10**5000
    return json.dumps({**item, "id": 0}).replace("0", "1" * 5001, 1) if huge else json.dumps(item)  # type: ignore[dict-item]


def test_bytes_that_are_no_utf8_cost_their_item() -> None:
    """And no other."""
    good = json.dumps(ITEM).encode()
    found = SPORTS.read(b"[" + good + b"," + good.replace(b"Foot", b"F\xf6\xf6t") + b"," + good + b"]")
    assert found == Answered([ITEM, ITEM], (Flaw(f"[1].translation: {CHARACTERS}", 1),))


def test_whole_pairs_are_characters() -> None:
    """Written as escapes, or as they are."""
    body = b'[{"id":1,"language":"en","translation":"\\ud83d\\ude00 \xf0\x9f\x98\x80"}]'
    assert SPORTS.read(body) == Answered([{**ITEM, "translation": "😀 😀"}])


def test_a_bad_language_is_left_out_of_its_map() -> None:
    """Its key or its text; the others stay."""
    bad = {"en": "Football", "de": None, "\ud83d": "x", "sv": "\udc00", "": "kept", "a b/?": "kept"}
    kept = {"en": "Football", "": "kept", "a b/?": "kept"}
    assert read(QUESTIONS.single("sport", 7), {"id": 7, "translations": bad}) == (
        {"id": 7, "translations": kept},
        [
            (f"translations.de: {STRING}", None),
            (f"translations.\\ud83d.[key]: {CHARACTERS}", None),
            (f"translations.sv: {CHARACTERS}", None),
        ],
    )


def test_too_many_errors_fail_the_answer() -> None:
    """They would fill the memory."""
    parts: dict[str, Any] = dict.fromkeys(("eventTranslation", "sport", "region", "league"), ENTITY)
    with pytest.raises(ApiError, match="event/7 answered with 100,001 errors"):
        read(QUESTIONS.event(7), {**parts, "competitors": [0] * 100_001})


def test_invalid_keys_that_look_alike_are_left_out_each() -> None:
    """With their values, which may be invalid too."""
    texts: dict[str, Any] = {chr(0xD83D): 5, chr(0xD83E): "x", "[key]": "kept", "en": "Football"}
    content, flaws = read(QUESTIONS.single("sport", 7), {"id": 7, "translations": texts})
    assert content["translations"] == {"[key]": "kept", "en": "Football"}
    assert flaws == [(f"translations.\\ud83{x}.[key]: {CHARACTERS}", None) for x in "de"]


def test_what_is_wrong_with_an_event_is_told_by_its_place() -> None:
    """A competitor is left out; a language of the league is."""
    competitors = [ENTITY, {"id": 8, "translations": None}, {"id": 9, "translations": {"en": 5, "sv": "Nio"}}]
    parts: dict[str, Any] = dict.fromkeys(("eventTranslation", "sport", "region"), ENTITY)
    league = {"id": 3, "translations": {"en": "League", "sv": []}}
    content, flaws = read(QUESTIONS.event(7), {**parts, "league": league, "competitors": competitors})
    assert content == {
        **parts,
        "league": {"id": 3, "translations": {"en": "League"}},
        "competitors": [ENTITY, {"id": 9, "translations": {"sv": "Nio"}}],
    }
    assert flaws == [
        (f"league.translations.sv: {STRING}", None),
        (f"competitors[1].translations: {OBJECT}", 8),
        (f"competitors[2].translations.en: {STRING}", 9),
    ]


def test_a_bad_selection_does_not_take_its_market_along() -> None:
    """A market without a name of its own goes as a whole, with whatever is wrong in it."""
    good = {"marketTypeId": 1, "market": ITEM, "selections": [ITEM]}
    bad = {"marketTypeId": 1, "market": {**ITEM, "id": 4}, "selections": [{**ITEM, "id": None}, ITEM, 7]}
    worse = {"marketTypeId": 1, "market": {**ITEM, "id": 5, "translation": None}, "selections": [None]}
    content, flaws = read(QUESTIONS.markets(7, "en"), [good, bad, worse])
    assert content == [good, {**bad, "selections": [ITEM]}]
    assert flaws == [
        (f"[1].selections[0].id: {INTEGER}", 4),
        (f"[1].selections[2]: {OBJECT}", 4),
        (f"[2].market.translation: {STRING}", 5),
    ]


def test_a_market_in_all_languages_is_no_different() -> None:
    """Down to one language of one selection."""
    market = {"marketTypeId": 1, "marketTranslations": {"id": 4, "translations": {"en": "Win", "sv": 1}}}
    selections = [{"id": 5, "translations": {"en": "Home", "sv": 1}}, {"id": 6}]
    content, flaws = read(QUESTIONS.all_markets(7), [{**market, "selections": selections}])
    assert content == [
        {
            "marketTypeId": 1,
            "marketTranslations": {"id": 4, "translations": {"en": "Win"}},
            "selections": [{"id": 5, "translations": {"en": "Home"}}],
        }
    ]
    assert flaws == [
        (f"[0].marketTranslations.translations.sv: {STRING}", 4),
        (f"[0].selections[0].translations.sv: {STRING}", 4),
        ("[0].selections[1].translations: Field required", 4),
    ]


def test_what_has_no_id_borrows_none() -> None:
    """Not of what is in it: that may be asked about by itself."""
    market = {"marketTypeId": 1, "market": {"language": "en"}, "selections": [{**ITEM, "language": 5}]}
    _, flaws = read(
        QUESTIONS.markets(7, "en"), [market, {**market, "market": ITEM}, {"selections": [ITEM, 5]}]
    )
    assert [number for _, number in flaws] == [None, 1, None]
    entity = {"id": 5, "translations": {"en": 1}}
    _, flaws = read(QUESTIONS.all_markets(7), [{"marketTypeId": 1, "selections": [entity]}])
    assert [number for _, number in flaws] == [None]


@pytest.mark.parametrize("answer", [{"id": 1}, "text", None, 5, True])
def test_what_is_no_list_is_no_answer(answer: object) -> None:
    """Where one is due."""
    with pytest.raises(
        ApiError, match="sports answered with an unexpected shape: the whole: Input should be a valid list"
    ):
        read(SPORTS, answer)


def test_an_empty_list_is_one() -> None:
    """With spaces, too."""
    assert read(SPORTS, []) == ([], [])
    assert SPORTS.read(b" [ ] ") == Answered([])


def test_currencies_may_lack_a_symbol_and_have_any_precision() -> None:
    """A field that may be null may be missing; a precision is any int32."""
    request = QUESTIONS.active_currencies()
    listed: list[dict[str, Any]] = [
        {"type": 1, "precision": -(2**31)},
        {"symbol": None, "type": 9, "precision": 2**31 - 1},
    ]
    assert read(request, listed) == ([{"symbol": None, **currency} for currency in listed], [])
    for wrong in (-(2**31) - 1, 2**31):
        content, flaws = read(request, [{"symbol": "EUR", "type": 1, "precision": wrong}])
        assert (content, len(flaws)) == ([], 1)
    assert read(QUESTIONS.currency_precision("X"), {"precision": -3}) == ({"precision": -3}, [])


def test_a_symbol_of_a_megabyte_is_not_told_whole() -> None:
    """Nor taken."""
    content, flaws = read(
        QUESTIONS.active_currencies(),
        [
            {"symbol": "\x1b[X" + "A" * 2**20, "type": 1, "precision": 2},
            {"symbol": "A" * 100, "type": 1, "precision": 2},
        ],
    )
    assert [currency["symbol"] for currency in content] == ["A" * 100]
    begins = "\\x1b[X" + "A" * 27
    assert flaws == [
        (f"[0].symbol: it begins with '{begins}' and has 1,048,579 characters, 100 are allowed", None)
    ]


def test_a_key_of_a_megabyte_is_not_told_whole() -> None:
    """Its beginning is."""
    _, [(why, _)] = read(QUESTIONS.single("sport", 7), {"id": 7, "translations": {"k" * 2**20: 5}})
    assert why == f"translations.{'k' * 30}.[key]: String should have at most 10000 characters"


def test_a_long_text_of_a_flaw_ends_early() -> None:
    """Keys within keys may make it long; shapes of the interface are not so deep."""
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
    """The first of them are told."""
    bad = [{**ITEM, "id": number, "translation": None} for number in range(2 * MAX_FLAWS + 500)]
    found = SPORTS.read(json.dumps([*bad, ITEM]).encode())
    assert found.content == [ITEM]
    assert [flaw.id for flaw in found.flaws] == [*range(MAX_FLAWS), None]
    assert (found.flaws[-1].why, found.more) == ("and 1,500 more", 1500)


@pytest.mark.parametrize("body", [b"[" * 10**6, b'[{"a":' + b"[" * 10**6, b'{"a":' * 10**5])
def test_json_within_json_ends(body: bytes) -> None:
    """Before the interpreter does."""
    with pytest.raises(ApiError, match=r"sports answered with invalid JSON: nested too deep$"):
        SPORTS.read(body)


def test_of_two_keys_of_one_name_the_last_counts() -> None:
    """As most do."""
    assert SPORTS.read(b'[{"id":9,"language":"en","translation":"Football","id":1}]') == Answered([ITEM])


@pytest.mark.parametrize(
    "body", [b"", b"  ", b"[", b'[{"id": 1', b'[{"id":1}', b'[{"id":1},', b'{"id": tr', b'["\\ud8']
)
def test_json_that_ends_too_early_is_half_an_answer(body: bytes) -> None:
    """Of which the rest may come at the next try."""
    with pytest.raises(
        Unfinished, match=r"^GET /api/translations/en/sports answered with incomplete JSON: it ends after "
    ):
        SPORTS.read(body)


@pytest.mark.parametrize(
    "body", [b"<html>", b"[}", b"[,]", b"[1,]", b"[1 2]", b"[] x", b"{} {}", b'{"a" 1}', b"nope", b"[1]]"]
)
def test_what_is_no_json_names_the_question(body: bytes) -> None:
    """It came whole, so that asking again would bring the same."""
    with pytest.raises(
        ApiError, match=r"^GET /api/translations/en/sports answered with invalid JSON: "
    ) as caught:
        SPORTS.read(body)
    assert not isinstance(caught.value, Unfinished)


def test_what_is_too_large_names_the_setting() -> None:
    """And nothing more of it is wanted."""
    reader = SPORTS.reader(100)
    assert reader.feed(b"[" + b" " * 99)
    assert not reader.feed(b"]")
    with pytest.raises(
        ApiError, match=r"sports answered more than 100 bytes, .*\(BRIDGE_API__MAX_ANSWER_BYTES\)"
    ):
        reader.answer()
