"""`bridge` of a version that does not know a result yet: `python -m tests.unknown_result run`."""

from __future__ import annotations

from bridge.cli import main
from bridge.messages import model

UNKNOWN = 2
"""Lose: of nearly half of the messages of the simulator."""

if __name__ == "__main__":
    del model.SETTLEMENT_RESULTS[UNKNOWN]
    main()
