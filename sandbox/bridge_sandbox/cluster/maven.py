"""jgo's Maven resolver, made safe to kill and with progress. Imported only for a download."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from jgo.maven import Artifact, MavenContext, PythonResolver

from bridge.errors import DevError
from bridge_sandbox.cluster.files import Progress

ATTEMPTS = 3
TIMEOUT_SECONDS = 30
_STEP_BYTES = 16_000_000


def lock_file() -> Path:
    """Return the lock file, in the repository, so that all its users share it."""
    return Path(MavenContext().repo_cache) / ".settlement-bridge.lock"


class Repository:
    """The local Maven repository. Hold `lock_file` while using it; files appear in it whole or not at all."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._context = MavenContext(resolver=_Resolver(progress), timeout=TIMEOUT_SECONDS)

    def class_path(self, *coordinates: str) -> tuple[Path, ...]:
        """The jars of some artifacts and of everything they need. Raises DevError."""
        main = coordinates[0]
        self._progress(f"resolving {main}")
        wanted = [self._context.create_dependency(coordinate) for coordinate in coordinates]
        with _explained(main):
            inputs, needed = self._context.resolver.resolve(wanted)
        artifacts = [dependency.artifact for dependency in (*inputs, *needed)]
        jars = []
        for number, artifact in enumerate(artifacts, 1):
            with _explained(str(artifact)):
                jars.append(Path(artifact.resolve()))
            if not zipfile.is_zipfile(jars[-1]):
                raise DevError(f"{jars[-1]} is damaged. Delete it and start again.")
            if number % 10 == 0:
                self._progress(f"{main}: {number} of {len(artifacts)} jars")
        return tuple(jars)

    def file(self, group: str, name: str, version: str, classifier: str, packaging: str) -> Path:
        """One file, without what it needs. Raises DevError."""
        artifact = self._context.project(group, name).at_version(version).artifact(classifier, packaging)
        self._progress(f"resolving {group}:{name}:{version}")
        with _explained(str(artifact)):
            return Path(artifact.resolve())


class _Resolver(PythonResolver):  # type: ignore[misc, unused-ignore]  # jgo's types are not always there
    """Downloads beside the repository and moves the whole file in; jgo itself leaves half a jar behind."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(progress_callback=self._report)
        self._progress = progress

    def download(self, artifact: Artifact) -> Path:
        """Fetch one file of the given artifact, trying again where the network was to blame."""
        target = Path(artifact.context.repo_cache) / artifact.component.path_prefix / artifact.cached_filename
        staging = Path(artifact.context.repo_cache) / ".settlement-bridge"
        context = MavenContext(self, staging, timeout=TIMEOUT_SECONDS)
        component = context.project(artifact.groupId, artifact.artifactId).at_version(artifact.version)
        staged = component.artifact(artifact.classifier, artifact.packaging)
        for attempt in range(1, ATTEMPTS + 1):
            shutil.rmtree(staging, ignore_errors=True)
            try:
                downloaded = super().download(staged)
                break
            except (OSError, RuntimeError):
                if attempt == ATTEMPTS:
                    raise
                time.sleep(attempt)
        assert downloaded is not None
        target.parent.mkdir(parents=True, exist_ok=True)
        Path(downloaded).replace(target)
        shutil.rmtree(staging)
        return target

    @contextlib.contextmanager
    def _report(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        """Report each part of a large file."""
        done = said = 0

        def advance(count: int) -> None:
            nonlocal done, said
            done += count
            if done - said >= _STEP_BYTES or (said and done == total):
                said = done
                self._progress(f"{name}: {done / 1e6:.0f} of {total / 1e6:.0f} MB")

        yield advance


class _Warnings(logging.Handler):
    """Drops jgo's warnings, but raises the one of a wrong checksum, which jgo lets pass."""

    def emit(self, record: logging.LogRecord) -> None:
        if (message := record.getMessage()).startswith("Checksum mismatch"):
            raise RuntimeError(message)


logging.getLogger("jgo").addHandler(_Warnings())
logging.getLogger("jgo").propagate = False


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:
        reason = str(error).partition("\n")[0][:300]
        raise DevError(
            f"cannot download {what}: {reason}\n"
            "Is the machine online, and does HTTPS_PROXY name the proxy if one is needed? "
            "What has been downloaded is kept: start again to resume."
        ) from error
