"""How an audit is shown to people."""

from __future__ import annotations

from bridge.audit.findings import Hour
from bridge.audit.report import _table


def test_the_table_fits_80_columns() -> None:
    head, row = _table({495_000: Hour(*[99_999_999] * 5)})
    assert len(head) == len(row) <= 80
    assert [head.index(name) + len(name) for name in ("bets", "dead letters")] == [28, 53]
    assert (row[16:28].strip(), row[40:53].strip()) == ("99,999,999", "99,999,999")
