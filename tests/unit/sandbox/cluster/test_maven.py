"""Downloads that fail, and half a download left by a kill."""

from __future__ import annotations

import gc
import hashlib
import http.server
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.errors import DevError
from bridge_sandbox.cluster import maven
from tests.tools import serves

# jgo leaves the response of a broken transfer open.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


class _Repository(http.server.BaseHTTPRequestHandler):
    """Answers with a file of 20 MB whose transfer breaks off `broken` times before it succeeds."""

    broken = 0
    checksum: str | None = None
    body = b"x" * 20_000_000

    def do_GET(self) -> None:
        server = type(self)
        if self.path.endswith(".sha1") and server.checksum:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(server.checksum.encode())
            return
        if not self.path.endswith("/thing-1.0.tar.gz"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body[:1000] if server.broken else self.body)
        server.broken -= bool(server.broken)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[_Repository]]:
    """A Maven repository on this machine in the place of the usual one, and an empty local one."""

    class Handler(_Repository):
        pass

    with serves(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        monkeypatch.setattr("jgo.maven._core.DEFAULT_REMOTE_REPOS", {"here": address})
        monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr("bridge_sandbox.cluster.maven.time.sleep", lambda seconds: None)
        yield Handler
    gc.collect()  # here, where its warning is expected, and not in another test


def fetch(lines: list[str], name: str = "thing") -> Path:
    return maven.Repository(lines.append).file("org.example", name, "1.0", "", "tar.gz")


def test_a_download_that_breaks_off_is_tried_again(repository: type[_Repository]) -> None:
    repository.broken = 2
    assert fetch([]).read_bytes() == repository.body


def test_a_download_that_keeps_breaking_leaves_no_half_file(
    repository: type[_Repository], tmp_path: Path
) -> None:
    repository.broken = 99
    with pytest.raises(DevError, match=r"cannot download org\.example:thing"):
        fetch([])
    assert not list((tmp_path / "m2" / "org").rglob("*.tar.gz"))


@pytest.mark.parametrize("right", [True, False])
def test_a_file_must_have_the_checksum_that_the_repository_names(
    repository: type[_Repository], right: bool
) -> None:
    repository.checksum = hashlib.sha1(repository.body if right else b"other").hexdigest()
    if right:
        assert fetch([]).is_file()
    else:
        with pytest.raises(DevError, match=r"thing.*Checksum mismatch"):
            fetch([])


def test_an_artifact_that_cannot_be_had_is_named_with_what_to_check(repository: type[_Repository]) -> None:
    with pytest.raises(DevError, match=r"(?s)org\.example:nothing.*HTTPS_PROXY"):
        fetch([], "nothing")
