"""Structured logging to stderr, for a terminal or as JSON. Secrets are masked; messages are not logged.

Who writes to a pipe that nobody reads, or to a terminal that is stopped, waits, possibly for ever. So what
must not stop writes to a queue (decision 0049): `never_wait`.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import select
import sys
import threading
from collections import deque
from typing import Any, TextIO

import orjson
import structlog
from structlog.typing import EventDict, WrappedLogger

from bridge.masking import concealed

QUEUE_BYTES = 1024 * 1024
"""What waits for a reader; a further line is dropped and counted."""
LAST_SECONDS = 2.0
"""How long the last lines of a process wait for a reader."""


def configure(*, verbose: bool = False, quiet: bool = False, json: bool | None = None) -> None:
    """Send all log lines to stderr. `json=None` means JSON unless stderr is a terminal.

    `verbose` also shows the log lines of librdkafka, websockets and other libraries. `quiet` shows errors
    only: what a command prints says the rest.
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
    logging.basicConfig(handlers=[handler], level=logging.ERROR if quiet else logging.INFO, force=True)
    for library in ("librdkafka", "websockets", "httpx", "httpx2", "asyncio"):
        # Their errors are mostly an unreachable broker or provider, which is a state of the bridge.
        logging.getLogger(library).setLevel(logging.DEBUG if verbose else logging.CRITICAL)
    logging.getLogger("botocore").setLevel(logging.WARNING)  # below it are the answers with credentials


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


_queue: _Queue | None = None


def never_wait() -> None:
    """Have whatever this process writes to stderr wait in a queue, also tracebacks and its last lines."""
    global _queue
    try:
        descriptor = sys.stderr.fileno()
    except io.UnsupportedOperation:  # a stream in memory
        return
    _queue = _Queue(descriptor)
    sys.stderr = io.TextIOWrapper(
        _queue, encoding=sys.stderr.encoding, errors="backslashreplace", write_through=True
    )
    atexit.register(drain)


def drain() -> None:
    """Wait until stderr has taken what was written to it, at most LAST_SECONDS."""
    if _queue is not None:
        _queue.drain(LAST_SECONDS)


def dropped() -> int:
    """Return how many lines were dropped since the start, because nobody read stderr."""
    return 0 if _queue is None else _queue.dropped


class _Queue(io.RawIOBase):
    """A stream that a thread writes to a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.dropped = 0
        """Lines that found no room."""
        self._descriptor = descriptor
        self._waiting: deque[bytes] = deque()
        """With the one that is being written, which is the first."""
        self._bytes = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Take all of it, or drop all of it."""
        line = bytes(data)
        with self._changed:
            if self._bytes + len(line) > QUEUE_BYTES:
                self.dropped += line.count(b"\n")
            else:
                self._waiting.append(line)
                self._bytes += len(line)
                self._changed.notify_all()
        return len(line)

    def drain(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, seconds)

    def _run(self) -> None:
        told = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                line = self._waiting[0]
            self._write(line)
            with self._changed:
                self._waiting.popleft()
                self._bytes -= len(line)
                self._changed.notify_all()
            if told != self.dropped:
                told, lines = self.dropped, self.dropped - told
                get().warning("log lines dropped, because nobody read stderr", lines=lines)

    def _write(self, line: bytes) -> None:
        while line:
            try:
                line = line[os.write(self._descriptor, line) :]
            except BlockingIOError:  # another process has made the pipe non-blocking
                select.select((), [self._descriptor], ())
            except OSError:  # nobody will ever read it
                return
