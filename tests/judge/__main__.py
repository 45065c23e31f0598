"""Judges a prefix from the command line: exit 1 if anything is found."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.judge import Case, Excuse, judge


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.judge", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--registry-url", required=True, help="base address of the registry's Confluent API")
    parser.add_argument("--prefix", default="settlement", help="of the topics (%(default)s)")
    parser.add_argument("--control-url", required=True, help="of the simulator, whose stream was stopped")
    parser.add_argument("--seed", type=int, default=0, help="only repeated in the report")
    parser.add_argument("--feed", default="settlement-v4", help="name of the feed (%(default)s)")
    parser.add_argument("--limits-scale", type=float, default=1.0, help="of the simulator (%(default)s)")
    parser.add_argument("--start-age", type=float, help="the bridge's `feed.start`, seconds")
    parser.add_argument(
        "--excused",
        type=float,
        nargs=2,
        action="append",
        default=[],
        metavar=("FROM", "TO"),
        help="Unix seconds between which a connection may replace another one; may be repeated",
    )
    parser.add_argument("--work", type=Path, help="directory for temporary files; 200 bytes for each message")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    chosen = vars(parser.parse_args())
    as_json, parent = chosen.pop("json"), chosen.pop("work")
    chosen = {name: value for name, value in chosen.items() if value is not None}
    case = Case(**chosen | {"excused": tuple(Excuse(*it) for it in chosen["excused"])})
    with TemporaryDirectory(dir=parent) as work:
        report = judge(case, Path(work))
    print(json.dumps(report.json()) if as_json else report)
    return 0 if report else 1


if __name__ == "__main__":  # not again in the process that it starts
    sys.exit(main())
