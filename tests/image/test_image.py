"""The image is built from Debian's packages, as the page of the installation has it, and its program runs.

Run by `make image-test`, as root. It pulls no image and needs no daemon; packages come from where this
machine has its own from. The images stay in a directory of the test.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge import RELEASE, version_of
from tests.repo.source import ROOT

AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
"""Whom this machine trusts; the build has to trust the same."""
BUILDAH = f"""\
#!/bin/sh
command=$1
shift
test "$command" != build || set -- --volume {AUTHORITIES}:{AUTHORITIES}:ro "$@"
exec {{buildah}} --root {{store}}/root --runroot {{store}}/run --storage-driver vfs "$command" "$@"
"""


class Image:
    """The image, and a container made from it."""

    def __init__(self, buildah: Path, clone: Path) -> None:
        self._buildah, self.clone = buildah, clone
        self._container = self._do("from", "--pull-never", f"settlement-bridge:{RELEASE}").stdout.strip()

    def config(self) -> dict[str, Any]:
        """What a container is started with."""
        found: dict[str, Any] = json.loads(self._do("inspect", self._container).stdout)["OCIv1"]["config"]
        return found

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the user of the image."""
        return subprocess.run(
            [self._buildah, "run", "--isolation", "chroot", self._container, "--", *command],
            capture_output=True,
            text=True,
            check=False,
        )

    def _do(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self._buildah, *arguments], capture_output=True, text=True, check=True)


def commands() -> str:
    """The commands of the page, in order."""
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    [block] = re.findall(
        r"^Where no base image can be pulled.*?```\n(.*?)```", page, re.DOTALL | re.MULTILINE
    )
    found: str = block
    return found


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The image of a clone."""
    there = tmp_path_factory.mktemp("image")
    clone, wrapper = there / "clone", there / "bin" / "buildah"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    wrapper.parent.mkdir()
    wrapper.write_text(BUILDAH.format(buildah=shutil.which("buildah"), store=there / "store"))
    wrapper.chmod(0o755)
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"PATH={wrapper.parent}:$PATH\n{commands()}"],
        cwd=clone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    yield Image(wrapper, clone)
    shutil.rmtree(there)


def test_it_runs_the_bridge_as_a_user_without_rights(image: Image) -> None:
    config = image.config()
    assert (config["Entrypoint"], config["Cmd"], config["User"]) == (["bridge"], ["run"], "10001:10001")
    assert config["ExposedPorts"].keys() == {"9464/tcp"}
    assert "Volumes" not in config
    assert image.run("id", "-u").stdout == "10001\n"


def test_it_has_this_version_compiled_and_no_compiler(image: Image) -> None:
    assert image.run("bridge", "--version").stdout.split()[-1] == version_of(image.clone)
    code = "from bridge.avro.encoder import compiled; print(compiled())"
    assert image.run("python", "-I", "-c", code).stdout == "True\n"
    assert image.run("bridge", "schemas", "check").returncode == 0
    assert image.run("sh", "-c", "command -v gcc || command -v cc").stdout == ""


def test_without_settings_it_says_what_is_missing(image: Image) -> None:
    ran = image.run("bridge", "run")
    assert ran.returncode == 2
    assert "BRIDGE_FEED__BASE_URL" in ran.stderr
