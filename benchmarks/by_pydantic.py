"""The bridge without its transcoder, so that pydantic converts every message.

    python -m benchmarks.by_pydantic run

Takes the arguments of `bridge`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from bridge.avro.codec import Codec
from bridge.avro.encoder import UnknownSchema
from bridge.messages import transcoder_plan


def no_transcoder(codec: Codec, zeros: Mapping[str, Any]) -> NoReturn:
    """Takes the place of `make_transcoder`. Raises UnknownSchema for every schema."""
    raise UnknownSchema("switched off")


def main() -> None:
    # The converter imports the function by name, and once compiled keeps what it imported.
    assert "bridge.messages.converter" not in sys.modules
    transcoder_plan.make_transcoder = no_transcoder
    from bridge.cli import main as bridge

    bridge()


if __name__ == "__main__":
    main()
