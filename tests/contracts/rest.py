"""The provider's REST side: what the snapshot jobs rely on when they ask (`Asks`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import pytest

from bridge.config import ApiSettings
from bridge.config.api import LISTED, Listed
from bridge.errors import ApiError, AuthError, Forbidden, Rejected, Unanswered
from bridge.rest.answers import Answered
from bridge.rest.endpoints import MAX_IDS, Questions, Request
from bridge.snapshots.asking import Asks
from bridge.snapshots.model import Texts

T = TypeVar("T")

LANGUAGES = ("en", "sv", "de")
Q = Questions(ApiSettings(languages=LANGUAGES))
NOBODY = 123_456
"""An id that nothing has."""


class Known(NamedTuple):
    """Some of what the provider knows: an event on which there are bets, and currencies."""

    event: int
    within: Mapping[Listed, list[int]]
    """The ids of what it belongs to, and of who takes part."""
    markets: Mapping[int, tuple[int, list[int]]]
    """Market → its type and its selections; each of them has a template, in the sport of the event."""
    currencies: Mapping[str, tuple[int, int]]
    """Symbol → type and precision, of all that are listed."""
    unlisted: Mapping[str, int]
    """Symbol → precision of others."""

    @property
    def sport(self) -> int:
        """The event's sport."""
        return self.within["sport"][0]

    @property
    def types(self) -> list[int]:
        """The types of its markets."""
        return sorted({type_ for type_, _ in self.markets.values()})

    @property
    def selections(self) -> list[int]:
        """The first selection of each market."""
        return [selections[0] for _, selections in self.markets.values()]


class Side(ABC):
    """A provider of names in `LANGUAGES`, and the way to it: one attempt for each request."""

    asks: Asks
    known: Known
    names: Mapping[str, Texts]
    """Key of a record → its names, by language."""

    @abstractmethod
    def take_right(self, request: Request[Any]) -> None:
        """Give no right to the endpoint of a request any more."""

    @abstractmethod
    def exhaust(self) -> None:
        """Let the next request be one too many, for ten seconds."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Let time pass."""

    @abstractmethod
    def revoke(self) -> None:
        """Let the token be valid no more."""

    @abstractmethod
    def cut(self) -> None:
        """Send half of the next answer."""

    async def ask(self, request: Request[T]) -> T:
        """The content of an answer without a flaw."""
        answered: Answered[T] = await self.asks.ask(request)
        assert answered.content is not None
        assert answered.flaws == ()
        return answered.content


def everything(known: Known) -> list[Request[Any]]:
    """A request for each of the 15 endpoints."""
    return [
        *(Q.listed(kind, "sv") for kind in LISTED),
        *(Q.single(kind, known.within[kind][0]) for kind in LISTED),
        Q.event(known.event),
        Q.markets(known.event, "sv"),
        Q.all_markets(known.event),
        Q.selection_templates(known.selections),
        Q.market_type_templates(known.sport, known.types),
        Q.active_currencies(),
        Q.currency_precision("EUR"),
    ]


class RestContract:
    """The suite; a fixture `side` says what it runs on."""

    @pytest.mark.parametrize("kind", LISTED)
    async def test_a_list_has_each_thing_once_under_its_name_in_that_language(
        self, side: Side, kind: Listed
    ) -> None:
        for language in LANGUAGES:
            items = await side.ask(Q.listed(kind, language))
            names = {item["id"]: item["translation"] for item in items}
            assert len(names) == len(items)
            assert {item["language"] for item in items} == {language}
            for number in side.known.within[kind]:
                assert names[number] == side.names[f"{kind}:{number}"][language]
        assert await side.ask(Q.listed(kind, "xx")) == []

    async def test_an_event_comes_with_all_names_of_what_it_belongs_to(self, side: Side) -> None:
        known = side.known
        event: Any = await side.ask(Q.event(known.event))
        one = event["eventTranslation"]
        assert one == {"id": known.event, "translations": side.names[f"event:{known.event}"]}
        members = {kind: [event[kind]] for kind in LISTED[:3]} | {"competitor": event["competitors"]}
        for kind in LISTED:
            assert [member["id"] for member in members[kind]] == known.within[kind]
            for member in members[kind]:
                assert member == await side.ask(Q.single(kind, member["id"]))
                assert member["translations"] == side.names[f"{kind}:{member['id']}"]

    async def test_markets_are_the_same_in_all_languages_and_in_one(self, side: Side) -> None:
        known = side.known
        in_all = await side.ask(Q.all_markets(known.event))
        found = {
            market["marketTranslations"]["id"]: (
                market["marketTypeId"],
                [selection["id"] for selection in market["selections"]],
            )
            for market in in_all
        }
        assert found == known.markets
        for language in LANGUAGES:
            in_one = await side.ask(Q.markets(known.event, language))
            assert len(in_one) == len(in_all)
            for item, entity in zip(in_one, in_all, strict=True):
                assert item["marketTypeId"] == entity["marketTypeId"]
                pairs = [(item["market"], entity["marketTranslations"])]
                pairs += zip(item["selections"], entity["selections"], strict=True)
                for text, texts in pairs:
                    named = {"language": language, "translation": texts["translations"][language]}
                    assert text == {"id": texts["id"], **named}

    async def test_templates_are_those_that_were_asked_for_in_one_request_of_a_hundred(
        self, side: Side
    ) -> None:
        known = side.known
        others = list(range(NOBODY, NOBODY + MAX_IDS))
        for key, ids, most in (
            ("selection-template:", known.selections, Q.selection_templates),
            (
                f"market-type-template:{known.sport}:",
                known.types,
                lambda ids: Q.market_type_templates(known.sport, ids),
            ),
        ):
            found = await side.ask(most([*ids, *others][:MAX_IDS]))
            assert {it["id"]: it["translations"] for it in found} == {
                it: side.names[f"{key}{it}"] for it in ids
            }
            full = most(others)
            more = replace(full, target=f"{full.target}&{full.target.rpartition('&')[2]}1")
            none = replace(full, target=full.target.partition("?")[0] + f"?sportId={known.sport}")
            for request in (more, none):
                with pytest.raises(Rejected) as refused:
                    await side.asks.ask(request)
                assert refused.value.status == 400

    async def test_what_nobody_knows_has_no_names_and_an_event_no_answer(self, side: Side) -> None:
        for kind in LISTED:
            assert await side.ask(Q.single(kind, NOBODY)) == {"id": NOBODY, "translations": {}}
        for request in (Q.event(NOBODY), Q.all_markets(NOBODY), Q.markets(NOBODY, "en")):
            assert await side.asks.ask(request) == Answered(None)
        with pytest.raises(Unanswered):
            await side.asks.ask(Q.currency_precision("NONE"))
        with pytest.raises(Rejected) as refused:
            await side.asks.ask(replace(Q.currency_precision("EUR"), target="/api/elsewhere"))
        assert refused.value.status == 404

    async def test_currencies_are_listed_by_their_type_and_others_have_a_precision(self, side: Side) -> None:
        listed, by_type = side.known.currencies, []
        for type_ in (1, 2, 3):
            found = await side.ask(Q.active_currencies(type_))
            assert {currency["type"] for currency in found} == {type_}
            by_type += found
        for every in (by_type, await side.ask(Q.active_currencies())):
            assert {it["symbol"]: (it["type"], it["precision"]) for it in every} == listed
        for symbol, precision in {**side.known.unlisted, "EUR": listed["EUR"][1]}.items():
            assert await side.ask(Q.currency_precision(symbol)) == {"precision": precision}

    @pytest.mark.parametrize("number", range(15))
    async def test_an_endpoint_refuses_what_is_too_much_not_allowed_or_not_valid(
        self, side: Side, number: int
    ) -> None:
        requests = everything(side.known)
        request = requests[number]
        side.exhaust()
        with pytest.raises(Unanswered):
            await side.asks.ask(request)
        side.wait(10)
        assert await side.ask(request)
        side.take_right(request)
        side.wait(1_000)
        for other in requests:
            if other.endpoint == request.endpoint:
                with pytest.raises(Forbidden):
                    await side.asks.ask(other)
            else:
                assert await side.ask(other)
        side.revoke()
        with pytest.raises(AuthError):
            await side.asks.ask(request)

    async def test_half_an_answer_is_none(self, side: Side) -> None:
        side.cut()
        with pytest.raises(ApiError) as caught:
            await side.asks.ask(Q.event(side.known.event))
        assert type(caught.value) is Unanswered, "another attempt may bring it"
        await side.ask(Q.event(side.known.event))
