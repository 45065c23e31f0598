"""Settlement bridge: a sportsbook settlement feed turned into Kafka, exactly once."""

import os
import re
import subprocess
from importlib import metadata
from pathlib import Path

RELEASE = "0.3.0"


def version_of(checkout: Path) -> str:
    """Return the release and, unless it is the tagged one, its commit: `0.3.0+12.g97ee8f41.dirty`.

    A checkout asks git each time, since an editable install keeps the version that it was installed with.
    Elsewhere it is that of the installed package.
    """
    git = ["git", "-C", str(checkout), "--no-optional-locks", "describe", "--tags", "--long", "--dirty"]
    try:
        if not (checkout / ".git").exists():
            return metadata.version("settlement-bridge")
        said = subprocess.run(
            [*git, "--always", "--abbrev=8", f"--match=v{RELEASE}"],
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
            env={name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError, metadata.PackageNotFoundError):
        return f"{RELEASE}+unknown"
    since = re.match(r"v.+-(\d+)-g", said)
    commit = f"{since[1]}.g{said[since.end() :]}" if since else f"g{said}"
    return RELEASE if re.fullmatch(r"0\.g\w+", commit) else f"{RELEASE}+{commit.replace('-', '.')}"


__version__ = version_of(Path(__file__).parents[1])
