"""Structured logging to stderr, for a terminal or as JSON. Secrets are masked; messages are not logged."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

import orjson
import structlog
from structlog.typing import EventDict, WrappedLogger

from bridge.masking import concealed


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
