"""The table of answers: each status has one consequence."""

from __future__ import annotations

import pytest

from bridge.rest.client import Consequence, consequence


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([200], Consequence.READ),
        ([401], Consequence.UNAUTHORIZED),
        ([403], Consequence.RIGHT),
        ([408, 421, 425, 500, 502, 503, 504, 599], Consequence.AGAIN),
        ([429], Consequence.SLOWER),
        ([201, 204, 206, 301, 302, 304, 308, 400, 404, 405, 406, 410, 413, 418, 422, 451], Consequence.NEVER),
    ],
)
def test_a_status_has_one_consequence(statuses: list[int], expected: Consequence) -> None:
    assert {consequence(x, waits=False, may_be_unknown=False) for x in statuses} == {expected}


def test_a_404_may_be_an_answer_and_a_403_may_ask_to_wait() -> None:
    assert consequence(404, waits=False, may_be_unknown=True) is Consequence.UNKNOWN
    assert consequence(403, waits=True, may_be_unknown=False) is Consequence.AGAIN
