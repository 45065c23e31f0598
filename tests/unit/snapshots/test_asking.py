"""What an account leaves out and owes for answers that are partly invalid, or about the id 0."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from bridge.errors import ApiError, Rejected
from bridge.rest.answers import Answered
from bridge.rest.endpoints import Questions, Request
from bridge.snapshots.asking import FEW, Account, Thing
from tests.unit.snapshots.provider import answered
from tests.unit.snapshots.world import api

QUESTIONS = Questions(api())


class Provider:
    """Gives one answer to every request, or refuses it."""

    def __init__(self, answer: object = None) -> None:
        self._answer = answer

    async def ask(self, request: Request[Any], attempts: int | None = None) -> Answered[Any]:
        if self._answer is None:
            raise Rejected(f"{request}: 400", 400)
        return answered(request, orjson.dumps(self._answer))


def translated(number: int, text: object) -> dict[str, object]:
    return {"id": number, "translations": {"en": text}}


async def test_an_invalid_template_is_left_out_and_owed_alone() -> None:
    account = Account(Provider([translated(1, "one"), translated(2, 2)]), api())
    things = [Thing("selection-template", number) for number in (1, 2)]
    await account.ask_chunk(things, lambda _: QUESTIONS.selection_templates([1, 2]))
    assert [left.id for left in account.left_out] == ["2"]
    assert account.owed == {"selection-template:2"}


@pytest.mark.parametrize("invalid", [FEW, FEW + 1])
async def test_a_list_with_too_many_invalid_items_fails(invalid: int) -> None:
    items = [{"id": n, "language": "en", "translation": n if n < invalid else "x"} for n in range(100)]
    account = Account(Provider(items), api(max_left_out_share=0.05))
    asking = account.ask_list(QUESTIONS.listed("sport", "en"), "en")
    if invalid == FEW:
        answered = await asking
        assert answered is not None
        assert len(answered.flaws) == FEW
    else:
        with pytest.raises(
            ApiError, match=r"89 valid and 11 invalid items, more than api\.max_left_out_share"
        ):
            await asking


@pytest.mark.parametrize(("number", "owed"), [(0, set()), (1, {"selection-template:1"})])
async def test_a_refused_0_is_not_owed(number: int, owed: set[str]) -> None:
    account = Account(Provider(), api())
    await account.ask_chunk(
        [Thing("selection-template", number)], lambda _: QUESTIONS.selection_templates([number])
    )
    assert (account.owed, len(account.left_out)) == (owed, len(owed))
