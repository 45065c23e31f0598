"""Structured logging to stderr, for a terminal or as JSON. Secrets are masked; messages are not logged."""

from __future__ import annotations

import base64
import logging
import re
import sys
from functools import cache
from html.entities import html5
from json import dumps as json_dumps
from typing import Any, TextIO

import orjson
import structlog
from structlog.typing import EventDict, WrappedLogger


def configure(*, verbose: bool = False, json: bool | None = None) -> None:
    """Send all log lines to stderr. `json=None` means JSON unless stderr is a terminal.

    `verbose` also shows the log lines of librdkafka, websockets and other libraries.
    """
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(
            serializer=lambda event, **_: orjson.dumps(event, default=str).decode()
        )
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = _Stderr()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _name_the_library],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _conceal_all,
                renderer,
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for library in ("librdkafka", "websockets", "httpx", "httpx2", "asyncio"):
        # Their errors are mostly an unreachable broker or provider, which is a state of the bridge.
        logging.getLogger(library).setLevel(logging.DEBUG if verbose else logging.CRITICAL)


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the current sys.stderr, which progress bars replace to keep the lines above them."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def _name_the_library(logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event["library"] = logger.name if isinstance(logger, logging.Logger) else event["_record"].name
    return event


MASK = "**********"
SHORT = 8
"""A shorter secret may be part of a word, so it is masked only as a separate word."""
KEPT = 3
"""Number of values remembered of a rotated secret."""

_BEFORE_A_WORD = r"(?:(?<!\w)|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\[nrt]))"
"""No letter, or the end of what stands for another character."""

_secrets: dict[str, tuple[tuple[str, str | None], ...]] = {}
_mask: re.Pattern[str] | None = None


def conceal(secret: str, name: str, user: str | None = None) -> None:
    """Mask this value of the secret `name` from now on, however others escape it, and in Basic auth."""
    global _mask
    known = _secrets.get(name, ())
    if not secret or (secret, user) in known:
        return
    _secrets[name] = (*known, (secret, user))[-KEPT:]
    seen = None
    while seen != _secrets:  # another thread may have added one
        seen = _secrets.copy()
        forms = {form for values in seen.values() for value in values for form in _forms(*value)}
        _mask = re.compile("|".join(map(_pattern, sorted(forms, key=len, reverse=True))))


def concealed(text: str) -> str:
    """Return the text with all secrets masked."""
    return text if _mask is None else _mask.sub(MASK, text)


def _forms(secret: str, user: str | None) -> set[str]:
    plain = {secret, *(line for line in secret.splitlines() if len(line) >= SHORT)}  # a key has many lines
    raw = secret.encode("utf-8", "surrogateescape")  # an environment variable need not be UTF-8
    basic = base64.b64encode((user or "").encode("utf-8", "surrogateescape") + b":" + raw).decode()
    return {*plain, basic}


def _pattern(form: str) -> str:
    pattern = "".join(map(_character, form))
    return pattern if len(form) >= SHORT else rf"{_BEFORE_A_WORD}{pattern}(?!\w)"


@cache
def _character(character: str) -> str:
    """Match a character as it is, and as URLs, JSON, HTML and programming languages write it.

    Who quotes a request may escape more than is necessary, and in upper or lower case.
    """
    if character.isascii() and character.isalnum():
        return character
    raw = character.encode("utf-8", "surrogateescape")
    units = character.encode("utf-16-be", "surrogatepass")
    code = ord(character)
    numbers = [
        "".join(f"%{byte:02x}" for byte in raw),
        "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)),
        "".join(f"\\x{byte:02x}" for byte in raw),
        f"\\x{code:02x}",
        f"&#x{code:x};",
    ]
    written = [
        character,
        f"\\{character}",
        repr(character)[1:-1],
        json_dumps(character, ensure_ascii=False)[1:-1],
        f"&#{code};",
        *(f"&{name}" for name, named in html5.items() if named == character and name.endswith(";")),
        *("+" if character == " " else ""),
    ]
    insensitive = "|".join(map(re.escape, numbers))
    return f"(?:{'|'.join(map(re.escape, dict.fromkeys(written)))}|(?i:{insensitive}))"


def _conceal_all(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Mask secrets anywhere in an event (structlog processor)."""
    return {
        name: value if name in ("level", "timestamp") else _without(value) for name, value in event.items()
    }


def _without(value: Any) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case dict():
            return {concealed(str(name)): _without(inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_without(inner) for inner in value]
        case _:
            return concealed(str(value)).encode("utf-8", "backslashreplace").decode()


def get(name: str = "bridge") -> structlog.stdlib.BoundLogger:
    """Return the logger of a part of the bridge."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger
