"""Date-times are read alike, compiled or not."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from bridge.messages import model, scalars

FORM = (
    r"([0-9]{4}-(0[0-9]|1[0-3])-[0-3][0-9]|[0-9]{4}-02-(28|29|30))T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]"
    r"(\.[0-9]{0,10})?(Z|[+-][0-2][0-9]:[0-6][0-9])?"
)
"""Date-times, and what is nearly one."""
near_misses = st.from_regex(FORM, fullmatch=True)
spoilt = st.builds(
    lambda text, at, put: text[: at % len(text)] + put + text[at % len(text) + 1 :],
    near_misses,
    st.integers(0, 40),
    st.text(max_size=2) | st.sampled_from(["T", ":", "-", "+", ".", "Z", " ", "5", "W"]),
)
read = scalars.DateTimes(model.not_a_date_time).parse


def outcome(parse: object, value: object) -> int | str:
    """Return its microseconds, or the error."""
    try:
        return parse(value)  # type: ignore[operator,no-any-return]
    except PydanticCustomError as error:
        return error.message()


@given(near_misses | spoilt)
@example("2100-02-29T00:00:00Z")
@example("2000-02-29T00:00:00Z")
@example("0001-01-01T00:00:00+14:00")
def test_both_ways_of_reading_a_date_time_agree(text: str) -> None:
    assert outcome(read, text) == outcome(model.parse_date_time, text)
