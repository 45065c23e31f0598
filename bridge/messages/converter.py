"""Converts messages of the feed to Avro records of settled bets.

The transcoder checks the parsed document and writes Avro in one walk. It accepts valid messages only, as
nearly all are. The others go to pydantic, which alone decides what is wrong; the codec encodes what it
accepts. pydantic is the only way where nothing is compiled, as the walk would be slower.
docs/decisions/0018-one-walk.md has the reasons.
"""

from __future__ import annotations

import sys
from typing import Final

from librt.strings import read_i64_le
from mypy_extensions import i64  # a machine integer once compiled, a plain one until then

from bridge import log
from bridge.avro.codec import Codec
from bridge.avro.encoder import UnknownSchema, compiled
from bridge.errors import ConversionError, SchemaError
from bridge.messages.parser import SMALL_BYTES, MessageParser, exceeds_any_bet
from bridge.messages.transcoder import Conversion, Transcoder
from bridge.messages.transcoder_plan import make_transcoder, parse

_MOST_DIGITS: Final = 4300
"""pydantic's parser refuses a number with more digits before the point, orjson does not."""
_STEP: Final = 4096
_QUOTE: Final = 0x22
_BACKSLASH: Final = 0x5C
"""A number: `in` would take longer to refuse bytes as a number than to search for them."""
TRANSCODER_ERRORS: Final = (ValueError, OverflowError)
"""Raised when the transcoder cannot handle a message."""


def make_converter(parser: MessageParser, codec: Codec, largest: int = sys.maxsize) -> Converter:
    """Make the fastest converter of bets whose key and value are together of `largest` bytes at most.

    Logs a warning if no transcoder can be made for the codec's schema.
    """
    if not compiled():
        return Converter(parser, codec, largest=largest)
    try:
        return Converter(parser, codec, make_transcoder(codec, parser.zeros), largest)
    except UnknownSchema as error:
        log.get().warning("messages are converted by pydantic alone, which is slower", reason=str(error))
        return Converter(parser, codec, largest=largest)


class Converter:
    """Converts with the transcoder, if there is one, and leaves unusual or invalid messages to pydantic."""

    def __init__(
        self,
        parser: MessageParser,
        codec: Codec,
        transcoder: Transcoder | None = None,
        largest: int = sys.maxsize,
    ) -> None:
        self._largest = largest
        self._parse = parser.parse
        self._encode = codec.encode
        self._transcoder = transcoder
        self.fallbacks = 0
        """Messages that the transcoder left to pydantic. Each costs more than with pydantic alone."""

    def convert(self, data: bytes) -> Conversion:
        """Convert one message.

        Raises ConversionError, also if model and schema disagree, or if Kafka would refuse the record.
        """
        ping_id, bet, extras = self._convert(data)
        if bet is not None and len(bet[0]) + len(bet[3]) > self._largest:
            reason = f"data: has more bytes as Avro than a record: {self._largest}"
            raise ConversionError(reason, ping_id=ping_id, extras=extras)
        return ping_id, bet, extras

    def _convert(self, data: bytes) -> Conversion:
        if self._transcoder is not None:
            try:
                return self.transcode(data)
            except TRANSCODER_ERRORS:
                self.fallbacks += 1
        ping_id, datum, extras = self._parse(data)
        if datum is None:
            return ping_id, None, extras
        try:
            value = self._encode(datum)
        except SchemaError as error:  # model and schema disagree: our mistake, but the bet must not be lost
            raise ConversionError(str(error), ping_id=ping_id) from None
        bet = (datum["betId"].encode(), datum["settlementVersion"], datum["settlementTime"], value)
        return ping_id, bet, extras

    def transcode(self, data: bytes) -> Conversion:
        """Convert one message with the transcoder.

        Raises one of `TRANSCODER_ERRORS` unless it is valid, ConversionError if it has too many values.
        """
        assert self._transcoder is not None
        if len(data) > SMALL_BYTES:
            exceeds_any_bet(data)
        message = parse(data)
        if not isinstance(message, dict) or (len(data) > _MOST_DIGITS and _may_hold_long_number(data)):
            raise ValueError
        return self._transcoder.transcode(message, _strings(data))


def _strings(data: bytes) -> i64:
    """Count the strings in the text of a document, including keys: two quotation marks each.

    Eight bytes at a time: `bytes.count` would take a tenth of the whole conversion.
    """
    ones: i64 = 0x0101_0101_0101_0101
    low: i64 = 0x7F7F_7F7F_7F7F_7F7F
    quote: i64 = 0x2222_2222_2222_2222
    quotes: i64 = 0
    at: i64 = 0
    size: i64 = len(data)
    while at + 8 <= size:
        found: i64 = 0
        end: i64 = at + 8 * 255  # each byte of `found` counts up to 255
        if end > size - 7:
            end = size - 7
        while at < end:
            word = read_i64_le(data, at)
            # The first bit of a byte is 0 if the byte is the character, otherwise 1.
            found += (~((((word ^ quote) & low) + low) | (word ^ quote)) >> 7) & ones
            at += 8
        while found != 0:
            quotes += found & 0xFF
            found = (found >> 8) & 0x00FF_FFFF_FFFF_FFFF
    while at < size:
        quotes += data[at] == _QUOTE
        at += 1
    if _BACKSLASH in data:
        quotes -= data.replace(b"\\\\", b"").count(b'\\"')
    return quotes // 2


def _may_hold_long_number(data: bytes) -> bool:
    """Return whether a number may have more than `_MOST_DIGITS`: it would fill one of the windows below."""
    places = range(0, len(data), _STEP)
    return any(data[place : place + _MOST_DIGITS - _STEP].isdigit() for place in places)
