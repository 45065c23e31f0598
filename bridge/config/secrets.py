"""Reads secrets from files, at each use, so that they can be rotated.

During a rotation a file may be missing or empty for a moment. The last secret is used then, so that a running
bridge continues.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from pathlib import Path

from bridge.config.files import read_bytes
from bridge.errors import SettingsError
from bridge.log import get
from bridge.masking import conceal


class Form(Enum):
    """What a secret must be to be sent."""

    ANY = ".*"
    HEADER = "[ -~]*"
    BEARER = "[!-~]*"

    def problem(self, secret: str) -> str:
        """Return why a secret is not of this form, "" if it is or is empty."""
        if re.fullmatch(self.value, secret, re.DOTALL):
            return ""
        if self is Form.HEADER:
            return "cannot be sent in a header: give one line of ASCII characters"
        return (
            "holds a text that cannot be a bearer token: give the token alone, one word of ASCII characters, "
            "without `Bearer` in front of it"
        )


_last: dict[Path, str] = {}
_warned: set[Path] = set()


def read_secret(name: str, file: Path, form: Form) -> str:
    """Return the secret in a file, or the last one while it cannot be used.

    Raises SettingsError, without the content, if the file could never be used.
    """
    secret, problem = _read(file, form)
    conceal(secret, name)
    if not problem:
        _last[file] = secret
        _warned.discard(file)
    elif file in _last:
        if file not in _warned:
            get().warning("secret file unreadable, using the last secret", file=str(file), reason=problem)
        _warned.add(file)
        return _last[file]
    else:
        raise SettingsError(f"{name}: cannot read {file}: {problem}")
    return secret


def digest(secrets: str, files: Iterable[Path]) -> bytes | None:
    """Return a digest of secrets and of the files, directories left out; None while one is missing."""
    found = hashlib.blake2b(secrets.encode("utf-8", "surrogateescape"))
    try:
        for file in files:
            with suppress(IsADirectoryError):
                found.update(read_bytes(file))
    except OSError:
        return None
    return found.digest()


def secret_problem(file: Path, form: Form) -> str:
    """Return the file of a secret and why it cannot be used now, "" if it can."""
    _, problem = _read(file, form)
    return problem and f"{file}: {problem}"


def _read(file: Path, form: Form) -> tuple[str, str]:
    """Return the content of the file, and the error if it cannot be used."""
    try:
        secret = read_bytes(file).decode("utf-8").strip()
    except OSError as error:
        return "", error.strerror or str(error)
    except UnicodeDecodeError:
        return "", "it is not UTF-8 text"
    if not secret:
        return "", "it is empty"
    problem = form.problem(secret)
    return secret, problem and f"it {problem}"
