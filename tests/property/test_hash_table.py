"""A table equals a dictionary in the order of the last insertion of each key."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.state.hash_table import KEY_BYTES, DigestTable

KEYS = [(n % 12).to_bytes(3, "big") + bytes(KEY_BYTES - 4) + bytes([n]) for n in range(60)]
"""All in one array of the index; those of one slot there differ in nothing that the index knows."""
PUT = st.tuples(st.sampled_from(KEYS), st.binary(min_size=3, max_size=3))


@settings(deadline=None)
@given(steps=st.lists(PUT | st.none(), max_size=300))
def test_a_table_is_an_ordered_dictionary(steps: list[tuple[bytes, bytes] | None]) -> None:
    """Keys are put and dropped in an order that makes the arrays grow and shrink."""
    table, model = DigestTable(3), dict[bytes, bytes]()
    for step in steps:
        if step is not None:
            model.pop(step[0], None)
            model[step[0]] = step[1]
            table.put(*step)
        elif model:
            oldest = next(iter(model))
            del model[oldest]
            while (dropped := table.drop()) is None:
                pass
            assert dropped == oldest
        assert len(table) == len(model)
    for key in KEYS:
        row = table.find(key)
        assert (table.payload(row) if row else None) == model.get(key)
