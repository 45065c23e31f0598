"""Certificates of the provider's authority, while their file is there and while it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bridge.config import tls
from bridge.errors import SettingsError
from tests.tls import Authority


@pytest.mark.parametrize("content", [None, "", "-----BEGIN CERTIFICATE-----\nMIIB"])
def test_what_was_read_before_stands_while_the_file_is_none(content: str | None, tmp_path: Path) -> None:
    """Away, empty or half written; with one warning. Another authority counts as soon as it is there."""
    file = Authority(tmp_path).certificate
    before = tls.context("feed", file).get_ca_certs()
    file.unlink() if content is None else file.write_text(content)
    with capture_logs() as logged:
        found = [tls.context("feed", file).get_ca_certs() for _ in range(3)]
    assert found == [before] * 3
    assert [line["log_level"] for line in logged] == ["warning"]
    assert Authority(tmp_path).certificate == file
    assert tls.context("feed", file).get_ca_certs() != before


def test_a_file_that_never_was_one_is_reported(tmp_path: Path) -> None:
    """By its setting."""
    with pytest.raises(SettingsError, match=r"BRIDGE_API__CA_FILE\): cannot use .*/nothing"):
        tls.context("api", tmp_path / "nothing")
