"""Build what is released, and prove it: `make release FROM=v0.2.0`, into dist/.

A clean clone of HEAD becomes sdists, wheels (compiled for this platform, plain for any, and the sandbox), the
bill of materials and the site. Each is then installed as a user would, in an environment of its own, and runs
the demo. With FROM, any earlier commit, its bridge takes turns with this one on one feed: an upgrade and a
rollback, of which each bet has to arrive once. Uploads nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bridge import __version__
from tools import sbom

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
DEMO_SECONDS = 20
UPGRADE_SECONDS = 45
"""Of three turns."""
SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
COMPILED = "from bridge.avro.encoder import compiled; print(compiled())"


def release(earlier: str | None) -> None:
    """Build all files, prove them, and write their checksums. Raises CalledProcessError, AssertionError."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with TemporaryDirectory(prefix="settlement-bridge-release-") as name:
        place = Path(name)
        source = _clone(place / "source", "HEAD")
        sdist, compiled, plain = build(source, DIST, "BRIDGE_MUST_COMPILE", "BRIDGE_PLAIN")
        _, sandbox = build(source / "sandbox", DIST, "BRIDGE_PLAIN")
        sbom.write(DIST / "sbom.cdx.json")
        with tarfile.open(DIST / f"settlement-bridge-site-{__version__}.tar.gz", "w:gz") as archive:
            archive.add(ROOT / "site", "site")
        new = prove("the compiled wheel", place / "compiled", [compiled, sandbox], is_compiled=True)
        prove("the plain wheel", place / "plain", [plain, sandbox], is_compiled=False)
        prove("the sdist", place / "sdist", [sdist, sandbox], is_compiled=True)
        if earlier is not None:
            old = build(_clone(place / "earlier", earlier), place / "earlier-dist", "BRIDGE_MUST_COMPILE")[1]
            other = install(place / "old", [old])
            command = [
                str(new),
                "demo",
                "--seconds",
                str(UPGRADE_SECONDS),
                "--kills",
                "2",
                "--other",
                str(other),
            ]
            _say(f"{earlier}, this one and {earlier} again: {_run(command, place).splitlines()[-1]}")
    sums = [f"{hashlib.sha256(it.read_bytes()).hexdigest()}  {it.name}\n" for it in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(sums), "utf-8")
    _say(f"{__version__} is in {DIST.relative_to(ROOT)}/:\n{''.join(sums)}")


def build(project: Path, dist: Path, *ways: str) -> list[Path]:
    """Return the sdist of a project and a wheel of it for each way, a variable that is set for its build."""
    _say(f"building {project.name}")
    dist.mkdir(exist_ok=True)
    made: list[Path] = []
    wheel = [sys.executable, *PIP, "wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={dist}"]
    for setting in ("", *ways):
        before = {*dist.iterdir()}
        command = [*wheel, str(made[0])] if setting else [sys.executable, "-c", SDIST, str(dist)]
        _run(command, project, setting)
        made += {*dist.iterdir()} - before
    return made


def install(place: Path, files: Sequence[Path]) -> Path:
    """Return the Python of a new environment with these files and what they require."""
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    wanted = [f"{file}[cluster]" if "sandbox" in file.name else str(file) for file in files]
    _run([str(python), *PIP, "install", *wanted], place, "BRIDGE_MUST_COMPILE")
    return python


def prove(what: str, place: Path, files: Sequence[Path], *, is_compiled: bool) -> Path:
    """Install files, ask for the version, and run the demo, which fails unless each bet arrives once.

    Returns the command.
    """
    python = install(place, files)
    command = python.with_name("bridge")
    version = _run([str(command), "--version"], place).split()[-1]
    assert version == __version__, f"{what} says that it is {version}, not {__version__}"
    said = _run([str(python), "-c", COMPILED], place).strip()
    assert said == str(is_compiled), f"{what}: compiled is {said}"
    figures = _run([str(command), "demo", "--seconds", str(DEMO_SECONDS)], place).splitlines()[-1]
    _say(f"{what}: {figures}")
    return command


def _clone(place: Path, commit: str) -> Path:
    """Return a checkout of a commit that has nothing but what is committed."""
    _run(["git", "clone", "--quiet", str(ROOT), str(place)], ROOT)
    _run(["git", "checkout", "--quiet", "--detach", commit], place)
    return place


def _run(command: Sequence[str], place: Path, setting: str = "") -> str:
    """Return what a command prints on stdout; the rest is shown."""
    ours = {name: it for name, it in os.environ.items() if name not in ("PYTHONPATH", "BRIDGE_VERSION")}
    environment = {**ours, setting: "1"} if setting else ours
    done = subprocess.run(command, cwd=place, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument(
        "--from", dest="earlier", metavar="COMMIT", help="an earlier release, to upgrade from"
    )
    if __version__.endswith(".dirty"):
        sys.exit("error: files were changed: commit them first, since a clean checkout is built")
    release(parser.parse_args().earlier)
