"""Bytes of the feed → the record of a settled bet, in either of two ways that differ in speed alone.

By pydantic: every message becomes a datum, which the codec encodes. By the transcoder: one walk through the
parsed document checks it and writes Avro. That takes nothing but what is right, as nearly every message
is, and leaves the rest to pydantic, the only judge of what is wrong and why.
docs/decisions/0018-two-converters.md tells what it gains, and why no message can tell the two apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from bridge import log
from bridge.avro.codec import Codec
from bridge.avro.encoder import UnknownSchema, compiled
from bridge.errors import ConversionError, SchemaError
from bridge.messages.parser import SMALL_BYTES, Converter, look
from bridge.messages.scalars import DateTimes
from bridge.messages.transcoder import Transcoder
from bridge.messages.transcoder_plan import parse, transcoder

_MOST_DIGITS: Final = 4300
"""Pydantic's parser refuses a number with more before the point, orjson does not."""
_STEP: Final = 4096
NOT_TAKEN: Final = (ValueError, OverflowError, KeyError)
"""What the transcoder raises; it says nothing. KeyError: the version or the time may be missing, and is."""


Bet = tuple[bytes, int, int, bytes]
"""A settled bet: its betId, which is the record's key; its version; its settlementTime, microseconds since
1970-01-01T00:00:00 UTC; and the record in the registry's wire format. It is taken apart at once, so that a
class would be made for nothing."""
Conversion = tuple[str | None, Bet | None, tuple[str, ...]]
"""A message of the feed: its ping id, its bet, and the extras of `bridge.messages.parser.Message`."""
Convert = Callable[[bytes], Conversion]
"""Converts one message. Raises ConversionError, also where the model and the codec's schema disagree."""


def conversion(
    choice: Literal["pydantic", "compiled"], converter: Converter, codec: Codec
) -> ByPydantic | ByTranscoder:
    """The way that `feed.converter` names. Where it is of no use, a warning says so, and it is pydantic."""
    by_pydantic = ByPydantic(converter, codec)
    if choice == "pydantic":
        return by_pydantic
    try:
        if not compiled():
            raise UnknownSchema("there is no compiled form of it here; `bridge doctor` says what is needed")
        return ByTranscoder(transcoder(codec, converter.zeros), by_pydantic.convert)
    except UnknownSchema as error:
        log.get().warning("feed.converter is pydantic after all", reason=str(error))
        return by_pydantic


class ByPydantic:
    """By way of a datum."""

    def __init__(self, converter: Converter, codec: Codec) -> None:
        self._decode = converter.decode
        self._encode = codec.encode
        self.fallbacks = 0
        """As of `ByTranscoder`: nothing is left to anybody."""

    def convert(self, data: bytes) -> Conversion:
        """Convert one message. Raises ConversionError."""
        ping_id, datum, extras = self._decode(data)
        if datum is None:
            return ping_id, None, extras
        try:
            value = self._encode(datum)
        except SchemaError as error:  # model and schema disagree: our mistake, but the bet must not be lost
            raise ConversionError(str(error), ping_id=ping_id) from None
        bet = (datum["betId"].encode(), datum["settlementVersion"], datum["settlementTime"], value)
        return ping_id, bet, extras


class ByTranscoder:
    """By one walk, and `otherwise` for what that does not take: pings, and whatever is unusual or wrong."""

    def __init__(self, transcoder: Transcoder, otherwise: Convert) -> None:
        self._transcode = transcoder.transcode
        self._date_time = DateTimes(ValueError).parse
        self._otherwise = otherwise
        self.fallbacks = 0
        """Messages that were left to `otherwise`: each has cost more than it would have at once."""

    def convert(self, data: bytes) -> Conversion:
        """Convert one message. Raises ConversionError."""
        try:
            return self.transcode(data)
        except NOT_TAKEN:
            self.fallbacks += 1
            return self._otherwise(data)

    def transcode(self, data: bytes) -> Conversion:
        """Convert one message with a bet. Raises one of `NOT_TAKEN` for any other, and what `look` does."""
        if len(data) > SMALL_BYTES:
            look(data)
        document = parse(data)
        if not isinstance(document, dict) or (len(data) > _MOST_DIGITS and _may_hold_long_number(data)):
            raise ValueError
        strings = _strings(data) - len(document)
        bet, ping_id = document.pop("data", None), document.pop("pingId", None)
        if isinstance(ping_id, str):
            strings -= 1
        elif ping_id is not None:
            raise ValueError
        if document:
            raise ValueError
        value = self._transcode(bet, strings)
        key, settled_at = bet["betId"].encode(), self._date_time(bet["settlementTime"])
        return ping_id, (key, bet["settlementVersion"], settled_at, value), ()


def _strings(data: bytes) -> int:
    """How many strings there are in the text of a document, keys included: two quotation marks for each."""
    quotes = data.count(b'"')
    if b"\\" in data:
        quotes -= data.replace(b"\\\\", b"").count(b'\\"')
    return quotes // 2


def _may_hold_long_number(data: bytes) -> bool:
    """Whether a number may have more than `_MOST_DIGITS`: it would cover one of these places whole."""
    places = range(0, len(data), _STEP)
    return any(data[place : place + _MOST_DIGITS - _STEP].isdigit() for place in places)
