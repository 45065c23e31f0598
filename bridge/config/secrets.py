"""Reads secrets from files, at each use, so that they can be rotated.

During a rotation a file may be missing or empty for a moment. The last secret is used then, so that a running
bridge continues.
"""

from __future__ import annotations

from pathlib import Path

from bridge.errors import SettingsError
from bridge.log import conceal, get

EMPTY = "it is empty"

_last: dict[Path, str] = {}
_warned: set[Path] = set()


def read_secret(name: str, file: Path) -> str:
    """Return the secret in a file, or the last one while it cannot be read; "" if it was always empty.

    Raises SettingsError, without the content, if the file could never be read.
    """
    secret, trouble = _read(file)
    if not trouble:
        conceal(secret, name)
        _last[file] = secret
        _warned.discard(file)
    elif file in _last:
        if file not in _warned:
            get().warning("secret file unreadable, using the last secret", file=str(file), reason=trouble)
        _warned.add(file)
        return _last[file]
    elif trouble != EMPTY:
        raise SettingsError(f"{name}: cannot read {file}: {trouble}")
    return secret


def secret_trouble(file: Path) -> str:
    """Return why a secret's file cannot be used now, "" if it can."""
    return _read(file)[1]


def _read(file: Path) -> tuple[str, str]:
    """Return the content of the file, and the error if it cannot be used."""
    try:
        secret = file.read_text("utf-8").strip()
    except OSError as error:
        return "", error.strerror or str(error)
    except UnicodeDecodeError:
        return "", "it is not UTF-8 text"
    return secret, "" if secret else EMPTY
