"""Pages over HTTP, the application called as a server would."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from wsgiref.types import WSGIApplication
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import orjson
import pytest

from bridge.observability.pages import TEXT, Answer, application, well_or_not


def ask(app: WSGIApplication, path: str, method: str = "GET") -> tuple[str, dict[str, str], bytes]:
    """Status, headers and body, with the rules of WSGI held against both sides."""
    request: dict[str, Any] = {
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "REQUEST_METHOD": method,
    }
    setup_testing_defaults(request)
    told: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        told.extend((status, dict(headers)))
        return lambda _: None

    answer = validator(app)(request, start_response)
    body = b"".join(answer)
    answer.close()  # type: ignore[attr-defined]  # the validator's, which insists on it
    return told[0], told[1], body


APP = application(
    {
        "/teapot": lambda environ: Answer(HTTPStatus.IM_A_TEAPOT, TEXT, b"short", (("X-Handle", "left"),)),
        "/well": lambda environ: well_or_not(True, {"reason": ""}),
        "/unwell": lambda environ: well_or_not(False, {"reason": "ill"}),
    }
)


def test_a_page_is_answered_as_it_says() -> None:
    """With its length, and never from a cache."""
    assert ask(APP, "/teapot") == (
        "418 I'm a Teapot",
        {"Content-Type": TEXT, "Content-Length": "5", "Cache-Control": "no-store", "X-Handle": "left"},
        b"short",
    )


def test_a_head_has_no_body() -> None:
    """But its length."""
    status, headers, body = ask(APP, "/teapot", "HEAD")
    assert (status, headers["Content-Length"], body) == ("418 I'm a Teapot", "5", b"")


@pytest.mark.parametrize(("path", "status", "ok"), [("/well", "200 OK", True), ("/unwell", "503", False)])
def test_health_is_a_status_and_why(path: str, status: str, ok: bool) -> None:
    """For a probe, and for a person."""
    found, headers, body = ask(APP, path)
    assert found.startswith(status)
    assert headers["Content-Type"] == "application/json"
    assert orjson.loads(body) == {"ok": ok, "reason": "" if ok else "ill"}


def test_what_there_is() -> None:
    """At the root, and where there is nothing."""
    assert ask(APP, "/")[2] == b"/teapot\n/well\n/unwell\n"
    status, _, body = ask(APP, "/elsewhere")
    assert (status, body) == ("404 Not Found", b"not here; there is / /teapot /well /unwell\n")


def test_only_reading_is_allowed() -> None:
    """And said so."""
    status, headers, _ = ask(APP, "/well", "POST")
    assert (status, headers["Allow"]) == ("405 Method Not Allowed", "GET, HEAD")
