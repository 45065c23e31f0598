"""A bridge of an earlier version, whose schema of settled bets lacks a field.

python -m tests.older run
"""

from __future__ import annotations

import copy
import sys
from typing import Final

from bridge.avro import schemas
from bridge.avro.schemas import Schema
from bridge.messages.parser import Message, MessageParser

FIELD: Final = "alternativePrice"
"""A field of an item that the earlier version does not know."""


def older() -> Schema:
    """Return the earlier schema of settled bets."""
    schema = copy.deepcopy(schemas.load("settled-bet"))
    [selections] = [field for field in schema["fields"] if field["name"] == "selections"]
    item = selections["type"][1]["items"]
    item["fields"] = [field for field in item["fields"] if field["name"] != FIELD]
    return schema


def _parse(parser: MessageParser, data: bytes) -> Message:
    """Parse a message as a model without the field does."""
    message = _PARSE(parser, data)
    for item in (message.bet and message.bet["selections"]) or ():
        item.pop(FIELD, None)
    return message


def _load(name: str) -> Schema:
    return _OLDER if name == "settled-bet" else _CURRENT(name)


if __name__ == "__main__":
    import bridge.service.app  # noqa: F401  # it takes the function over
    from bridge.cli import main

    _CURRENT, _OLDER, _PARSE = schemas.load, older(), MessageParser.parse
    setattr(MessageParser, "parse", _parse)  # noqa: B010
    for module in [*sys.modules.values()]:
        if getattr(module, "load", None) is _CURRENT:
            setattr(module, "load", _load)  # noqa: B010
    main()
