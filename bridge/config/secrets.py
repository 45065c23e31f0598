"""Reads secrets from files, at each use, so that they can be rotated.

During a rotation a file may be missing or empty for a moment. The last secret is used then, so that a running
bridge continues.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bridge.errors import SettingsError
from bridge.log import get
from bridge.masking import conceal

EMPTY = "it is empty"
UNFIT = "holds what no header can: give one line of ASCII characters"

_last: dict[Path, str] = {}
_warned: set[Path] = set()


def read_secret(name: str, file: Path, *, for_header: bool = False) -> str:
    """Return the secret in a file, or the last one while it cannot be used; "" if it was always empty.

    One `for_header` is of printable ASCII characters. Raises SettingsError, without the content, if the file
    could never be used.
    """
    secret, trouble = _read(file, for_header)
    conceal(secret, name)
    if not trouble:
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


def digest(secrets: str, files: Iterable[Path]) -> bytes | None:
    """Return a digest of secrets and of the files, directories left out; None while one is missing."""
    found = hashlib.blake2b(secrets.encode("utf-8", "surrogateescape"))
    try:
        for file in files:
            with suppress(IsADirectoryError):
                found.update(file.read_bytes())
    except OSError:
        return None
    return found.digest()


def secret_trouble(file: Path, *, for_header: bool = False) -> str:
    """Return why a secret's file cannot be used now, "" if it can."""
    return _read(file, for_header)[1]


def fits_header(secret: str) -> bool:
    """Return whether a header can hold a secret."""
    return re.fullmatch("[ -~]+", secret) is not None


def _read(file: Path, for_header: bool) -> tuple[str, str]:
    """Return the content of the file, and the error if it cannot be used."""
    try:
        secret = file.read_text("utf-8").strip()
    except OSError as error:
        return "", error.strerror or str(error)
    except UnicodeDecodeError:
        return "", "it is not UTF-8 text"
    if not secret:
        return "", EMPTY
    return secret, f"it {UNFIT}" if for_header and not fits_header(secret) else ""
