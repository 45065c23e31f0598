"""Files that hold a secret: read at each use, so that it can be rotated.

Whoever rotates one may move it away, or empty it, before the new one is written. What is read then is the
last secret that the file held: a running bridge does not end for it.
"""

from __future__ import annotations

from pathlib import Path

from bridge.errors import SettingsError
from bridge.log import conceal, get

EMPTY = "it is empty"

_last: dict[Path, str] = {}
_told: set[Path] = set()


def read_secret(name: str, file: Path) -> str:
    """The content of a secret's file, or the last one while there is none; empty where it always was.

    Raises SettingsError, which says nothing of the content, where it cannot be read and never could.
    """
    secret, trouble = _read(file)
    if not trouble:
        conceal(secret, name)
        _last[file] = secret
        _told.discard(file)
    elif file in _last:
        if file not in _told:
            get().warning(
                "a secret's file cannot be read: the last one is used", file=str(file), reason=trouble
            )
        _told.add(file)
        return _last[file]
    elif trouble != EMPTY:
        raise SettingsError(f"{name}: cannot read {file}: {trouble}")
    return secret


def secret_trouble(file: Path) -> str:
    """Why a secret's file cannot be used at this moment; empty when it can."""
    return _read(file)[1]


def _read(file: Path) -> tuple[str, str]:
    """What is in the file, and what is wrong with that."""
    try:
        secret = file.read_text("utf-8").strip()
    except OSError as error:
        return "", error.strerror or str(error)
    except UnicodeDecodeError:
        return "", "it is not UTF-8 text"
    return secret, "" if secret else EMPTY
