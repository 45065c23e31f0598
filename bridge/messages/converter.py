"""Converts messages of the feed to Avro records of settled bets, in one of two ways with the same result.

pydantic makes a datum of each message, which the codec encodes. The transcoder is faster: it checks the
parsed document and writes Avro in one walk. It accepts valid messages only, as nearly all are. The others go
to pydantic, which alone decides what is wrong. docs/decisions/0018-two-converters.md has the reasons.
"""

from __future__ import annotations

from typing import Final, Literal

from bridge import log
from bridge.avro.codec import Codec
from bridge.avro.encoder import UnknownSchema, compiled
from bridge.errors import ConversionError, SchemaError
from bridge.messages.parser import SMALL_BYTES, MessageParser, exceeds_any_bet
from bridge.messages.scalars import DateTimes
from bridge.messages.transcoder import Transcoder
from bridge.messages.transcoder_plan import make_transcoder, parse

_MOST_DIGITS: Final = 4300
"""pydantic's parser refuses a number with more digits before the point, orjson does not."""
_STEP: Final = 4096
TRANSCODER_ERRORS: Final = (ValueError, OverflowError, KeyError)
"""Raised when the transcoder cannot handle a message. KeyError: no settlementVersion or settlementTime."""


Bet = tuple[bytes, int, int, bytes]
"""A settled bet: the key (its betId), its version, its settlementTime (microseconds since
1970-01-01T00:00:00 UTC), and the record in the registry's wire format. A plain tuple is the fastest."""
Conversion = tuple[str | None, Bet | None, tuple[str, ...]]
"""A converted message: its ping id, its bet, and the extras of `bridge.messages.parser.Message`."""


def make_converter(choice: Literal["pydantic", "compiled"], parser: MessageParser, codec: Codec) -> Converter:
    """Make the converter that `feed.converter` names.

    If the transcoder cannot be used, log a warning and convert with pydantic.
    """
    if choice == "pydantic":
        return Converter(parser, codec)
    try:
        if not compiled():
            raise UnknownSchema("the bridge is not compiled here; `bridge doctor` shows what is missing")
        return Converter(parser, codec, make_transcoder(codec, parser.zeros))
    except UnknownSchema as error:
        log.get().warning("compiled converter not available, using pydantic", reason=str(error))
        return Converter(parser, codec)


class Converter:
    """Converts with the transcoder, if there is one, and leaves unusual or invalid messages to pydantic."""

    def __init__(self, parser: MessageParser, codec: Codec, transcoder: Transcoder | None = None) -> None:
        self._parse = parser.parse
        self._encode = codec.encode
        self._transcoder = transcoder
        self._date_time = DateTimes(ValueError).parse
        self.fallbacks = 0
        """Messages that the transcoder left to pydantic. Each costs more than with pydantic alone."""

    def convert(self, data: bytes) -> Conversion:
        """Convert one message. Raises ConversionError, also if model and schema disagree."""
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

        Raises one of `TRANSCODER_ERRORS` unless it is a valid bet, ConversionError if it has too many values.
        """
        assert self._transcoder is not None
        if len(data) > SMALL_BYTES:
            exceeds_any_bet(data)
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
        value = self._transcoder.transcode(bet, strings)
        key, settled_at = bet["betId"].encode(), self._date_time(bet["settlementTime"])
        return ping_id, (key, bet["settlementVersion"], settled_at, value), ()


def _strings(data: bytes) -> int:
    """Count the strings in the text of a document, including keys: two quotation marks each."""
    quotes = data.count(b'"')
    if b"\\" in data:
        quotes -= data.replace(b"\\\\", b"").count(b'\\"')
    return quotes // 2


def _may_hold_long_number(data: bytes) -> bool:
    """Return whether a number may have more than `_MOST_DIGITS`: it would fill one of the windows below."""
    places = range(0, len(data), _STEP)
    return any(data[place : place + _MOST_DIGITS - _STEP].isdigit() for place in places)
