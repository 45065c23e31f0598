"""A file that would hang its reader is refused, or given up: the event loop reads some of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bridge.config import FeedSettings, KafkaSettings, RegistrySettings, files, tls
from bridge.errors import SettingsError
from bridge.kafka import clients
from bridge.registry import Registry

Use = Callable[[Path], object]
USES: dict[str, Use] = {
    "secret": lambda file: FeedSettings(auth="bearer", auth_value_file=file).secret.read(),
    "secret of Kafka": lambda file: KafkaSettings.model_validate(
        {"sasl_password_file": str(file)}
    ).properties(),
    "authority": lambda file: tls.context("feed", FeedSettings(ca_file=file)),
    "certificate": lambda file: tls.context("feed", FeedSettings(client_certificate_file=file)),
    "authority of Kafka": lambda file: clients.admin(
        KafkaSettings.model_validate({"security_protocol": "ssl", "ssl_ca_location": str(file)})
    ),
    "authority of the registry": lambda file: Registry(
        RegistrySettings(url="https://127.0.0.1:1", ca_file=file)
    ),
}


def within(seconds: float, use: Use, file: Path) -> SettingsError:
    """The error of a use on a thread, which must not hang."""
    errors = list[SettingsError]()

    def run() -> None:
        with pytest.raises(SettingsError) as caught:
            use(file)
        errors.append(caught.value)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it hangs"
    return errors[0]


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_pipe_is_refused(use: Use, tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    said = str(within(20, use, pipe))
    assert str(pipe) in said
    assert "it is not a regular file but a pipe or the like" in said


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A file system whose server is gone, until the end of the test; the reads that wait for it."""
    back, reads = threading.Event(), list[str]()

    def read(file: Path) -> bytes:
        reads.append(file.name)
        back.wait()
        return b""

    monkeypatch.setattr(files, "_read", read)
    monkeypatch.setattr(files, "READ_SECONDS", 0.01)
    monkeypatch.setattr(files, "_hanging", {})
    yield reads
    back.set()


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_file_whose_server_is_gone_is_given_up(use: Use, gone: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "no answer in 0.01 s" in str(within(20, use, tmp_path / "file"))
    within(20, use, tmp_path / "file")
    assert gone == ["file"]


def test_a_secret_counts_while_its_file_is_a_pipe_or_gone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one-hush")
    read = FeedSettings(auth="bearer", auth_value_file=file).secret.read
    assert read() == "one-hush"
    file.unlink()
    os.mkfifo(file)
    with capture_logs() as logged:
        assert read() == "one-hush"
    [line] = logged
    assert line["reason"].endswith(f"{file}: it is not a regular file but a pipe or the like")
