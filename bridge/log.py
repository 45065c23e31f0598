"""Structured log lines on stderr: readable on a terminal, JSON elsewhere. Never one a message."""

from __future__ import annotations

import logging
import sys

import orjson
import structlog
from structlog.typing import EventDict, WrappedLogger


def configure(*, verbose: bool = False, json: bool | None = None) -> None:
    """Send all log lines to stderr. `json=None` means JSON unless stderr is a terminal.

    `verbose` also shows what librdkafka and websockets say of themselves.
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
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _name_the_library],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for library in ("librdkafka", "websockets", "httpx", "httpx2", "asyncio"):
        # What they report as an error is mostly a broker or a provider that is away: a state of ours.
        logging.getLogger(library).setLevel(logging.DEBUG if verbose else logging.CRITICAL)


def _name_the_library(logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event["library"] = logger.name if isinstance(logger, logging.Logger) else event["_record"].name
    return event


def get(name: str = "bridge") -> structlog.stdlib.BoundLogger:
    """The logger of a part of the bridge."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger
