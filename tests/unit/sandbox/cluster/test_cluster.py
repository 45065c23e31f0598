"""A start that fails, with a script in the place of Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.errors import DevError
from bridge.sandbox.cluster import ports
from bridge.sandbox.cluster.cluster import Cluster
from bridge.sandbox.cluster.downloads import Artifacts

JAVA = '#!/bin/sh\ncase "$*" in *-jar*) touch schemas.mv.db; exec sleep 60;; *) sleep 1; exit 1;; esac\n'
"""The registry creates its database, and the brokers cannot be formatted."""


@pytest.mark.parametrize("known", [False, True])
def test_a_failed_first_start_leaves_no_half_made_schemas(tmp_path: Path, known: bool) -> None:
    """A registry does not start on tables that are half made. Schemas of an earlier start stay."""
    java = tmp_path / "java"
    java.write_text(JAVA)
    java.chmod(0o700)
    database = tmp_path / "registry" / "schemas.mv.db"
    listener = ports.Listener(ports.free_port(), ports.free_port())
    cluster = Cluster(tmp_path, Artifacts(java, (), java, tmp_path / "aot"), [listener], 1)
    if known:
        database.write_text("schemas")
    with pytest.raises(DevError, match=r"left no data/meta\.properties"):
        cluster.start(lambda line: None)
    assert database.exists() is known
