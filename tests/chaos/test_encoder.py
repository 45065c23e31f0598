"""A long comparison of the encoder, in every form there is, with fastavro: a line of figures."""

from __future__ import annotations

import json
import os
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from bridge.avro.codec import Codec
from bridge.errors import SchemaError
from tests.avro_data import FORMS, OWN, POOL, Maker, Pool, Schema, by_fastavro, encoded, schemas

RECORDS = int(os.environ.get("MESSAGES", "100000"))
"""For each form, as many that are right as have something in them that may be wrong."""
SEED = int(os.environ.get("SEED", "1"))
BATCH = 100
"""Records from each schema and pool."""
CAMPAIGN = settings(
    max_examples=RECORDS // BATCH,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def test_encoder_beside_fastavro() -> None:
    figures: Counter[str] = Counter()

    @seed(SEED)
    @CAMPAIGN
    @given(st.sampled_from(OWN) | schemas(), POOL, st.integers(0, 2**32))
    def compare(schema: Schema, pool: Pool, number: int) -> None:
        maker = Maker(schema, pool, number)
        codec = Codec(schema, 1)
        figures["schemas"] += 1
        for index in range(BATCH):
            right = index % 2 == 0
            datum = maker.exact() if right else maker.spoilt(maker.junk())[0]
            expected = by_fastavro(maker.schema, datum)
            for name, form in FORMS.items():
                found = encoded(form, maker.schema, datum)
                assert found == expected if right else found in (expected, None)
                figures[name] += 1
            try:
                written = codec.encode(datum)[5:]
                assert written == expected
                figures["written"] += 1
                figures["bytes"] += len(written)
            except SchemaError:
                assert not right
                figures["refused"] += 1

    compare()
    assert all(figures[name] >= RECORDS for name in FORMS)
    print(json.dumps({"campaign": "encoder", "seed": SEED, **figures}), flush=True)
