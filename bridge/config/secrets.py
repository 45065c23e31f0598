"""Reads secrets from files, at each use, so that they can be rotated.

During a rotation a file may be missing or empty for a moment. The last secret is used then, so that a running
bridge continues.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from bridge.config.files import last_good, read_bytes
from bridge.config.names import env_name
from bridge.errors import SettingsError
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


@dataclass(frozen=True)
class Secret:
    """A secret of a setting, such as `feed.auth_value`: its value, or the file that has it."""

    setting: str
    value: SecretStr | None
    file: Path | None
    form: Form = Form.ANY
    user: str | None = None
    """Whose it is, if it is sent by Basic authentication."""

    @property
    def variable(self) -> str:
        """The variable of its value."""
        return env_name(*self.setting.split("."))

    @property
    def is_given(self) -> bool:
        """Whether there is a value or a file."""
        return self.value is not None or self.file is not None

    def read(self) -> str:
        """Return it as it is now, or as its file had it last while that cannot be used.

        Raises SettingsError, without the content, if it could never be used.
        """
        if self.file is None:
            secret = self.value.get_secret_value() if self.value else ""
            if self.form is Form.BEARER:  # as from a file
                secret = secret.strip()
        else:
            event = "secret file unreadable, using the last secret"
            secret = last_good(self.file, partial(self._read, self.file), event, file=str(self.file))
        conceal(secret, self.variable, self.user)
        if problem := self.form.problem(secret):
            raise SettingsError(f"{self.variable} {problem}")
        return secret

    def _read(self, file: Path) -> str:
        secret, problem = _read(file, self.form)
        conceal(secret, f"{self.variable}_FILE")  # apart from the one that counts, which it must not displace
        if problem:
            raise SettingsError(f"{self.variable}_FILE: cannot read {file}: {problem}")
        return secret

    def problem(self) -> str:
        """Return its file and why that cannot be used now, "" if it can, or there is none."""
        problem = "" if self.file is None else _read(self.file, self.form)[1]
        return problem and f"{self.file}: {problem}"


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
