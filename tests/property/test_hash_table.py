"""A table equals a dictionary in the order of the last insertion of each key."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.dedup.hash_table import KEY_BYTES, DigestTable

KEYS = [(n % 12).to_bytes(3, "big") + bytes(KEY_BYTES - 4) + bytes([n]) for n in range(60)]
"""All in one array of the index; those of one slot there differ in nothing that the index knows."""
STEP = st.tuples(
    st.sampled_from(["put put", "put put", "copy", "find put", "find drop put", "put drop put", "drop"]),
    st.sampled_from(KEYS),
    st.binary(min_size=3, max_size=3),
)
"""`copy` puts an equal key that is another object: the table knows the place of the last one by identity."""


@settings(deadline=None, max_examples=200)
@given(steps=st.lists(STEP, max_size=100))
def test_a_table_is_an_ordered_dictionary(steps: list[tuple[str, bytes, bytes]]) -> None:
    table, model = DigestTable(3), dict[bytes, bytes]()
    for actions, key, payload in steps:
        for action in actions.split():
            if action == "find":
                row = table.find(key)
                assert (table.payload(row) if row else None) == model.get(key)
            elif action in ("put", "copy"):
                model.pop(key, None)
                model[key] = payload
                table.put(bytes(bytearray(key)) if action == "copy" else key, payload)
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
