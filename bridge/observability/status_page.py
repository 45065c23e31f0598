"""A status page of a program: whole without JavaScript, with a stream of what changes on it.

Both are rendered from one template on the threads of the server. Each block of the template is the content of
the element with its name as id; the stream sends the blocks whose text is new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from importlib.resources import files

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined

from bridge import __version__
from bridge.formatting import format_duration, format_utc, shortened
from bridge.masking import concealed
from bridge.observability.endpoints import COMPUTING, HttpAnswer, Page
from bridge.observability.http_server import max_connections

_INTERVAL_SECONDS = 1.0
_MESSAGES = 300
"""Length of a stream. The browser then opens the next one."""
_AGAIN_SECONDS = 5
"""When a browser for which there is no stream asks again."""
_STATIC = {"page.css": "text/css", "page.js": "text/javascript", "page.svg": "image/svg+xml"}


def status_page(
    name: str,
    view: Callable[[], object],
    *,
    streams: int | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> Mapping[str, Page]:
    """Return the page, its files and its stream, by path.

    `name` is that of the template, which shows what `view` returns at that moment. At most `streams` are open
    at once: a quarter of the server's connections, so that enough are left for probes and scrapers. A browser
    beyond that gets one message and asks again a few seconds later.
    """
    environment = Environment(
        loader=PackageLoader("bridge.observability", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        duration=format_duration, utc=_utc, count="{:,}".format, rate=_rate, short=_short
    )
    template = environment.get_template(f"{name}.html")
    slots = threading.Semaphore(max_connections() // 4 if streams is None else streams)

    def context() -> dict[str, object]:
        return {"view": view(), "version": f"settlement-bridge {__version__}"}

    def page(accept: str) -> HttpAnswer:
        body = template.render(context()).encode("utf-8", "replace")
        return HttpAnswer(HTTPStatus.OK, "text/html; charset=utf-8", body)

    def blocks() -> dict[str, str]:
        with COMPUTING:
            shown = template.new_context(context())
            texts = {name: "".join(block(shown)) for name, block in template.blocks.items()}
        return {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}

    def events() -> Iterator[bytes]:
        if not slots.acquire(blocking=False):
            yield b"retry: %d\n" % (_AGAIN_SECONDS * 1000) + _message(blocks())
            return
        try:
            shown: dict[str, str] = {}
            for _ in range(_MESSAGES):
                current = blocks()
                yield _message({name: text for name, text in current.items() if shown.get(name) != text})
                shown = current
                sleep(_INTERVAL_SECONDS)
        finally:
            slots.release()

    pages: dict[str, Page] = {f"/{name}": partial(_static, name) for name in _STATIC}
    pages["/"] = page
    pages["/events"] = lambda accept: HttpAnswer(HTTPStatus.OK, "text/event-stream", events())
    return pages


def _static(name: str, accept: str) -> HttpAnswer:
    body = (files("bridge.observability") / "page" / name).read_bytes()
    return HttpAnswer(HTTPStatus.OK, f"{_STATIC[name]}; charset=utf-8", body)


def _message(changed: Mapping[str, str]) -> bytes:
    return b"data: " + orjson.dumps(changed) + b"\n\n"


def _utc(seconds: float) -> str:
    return format_utc(round(seconds)).replace("T", " ").replace("Z", " UTC")


def _short(text: str, most: int = 200) -> str:
    """Shorten a text and mask secrets: a provider may quote the request with its token."""
    return shortened(concealed(text), most)


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 or not rate else f"{rate:.1f}"
