"""Prepares what is shown: masks secrets, in every form in which others may write them.

A text that names the variable of a setting is shown with the settings file that has its value instead.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache
from html.entities import html5
from json import dumps as json_dumps

MASK = "**********"
SHORT = 8
"""A shorter secret may be part of a word, so it is masked only as a separate word."""
KEPT = 3
"""Number of values remembered of a rotated secret."""

_BEFORE_A_WORD = r"(?:(?<!\w)|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\[nrt]))"
"""No letter, or the end of what stands for another character."""

_secrets: dict[str, tuple[tuple[str, str | None], ...]] = {}
_mask: re.Pattern[str] | None = None
_rename: Callable[[str], str] = str


def conceal(secret: str, name: str, user: str | None = None) -> None:
    """Mask this value of the secret `name` from now on, however others escape it, and in Basic auth."""
    global _mask
    known = _secrets.get(name, ())
    if not secret or (secret, user) in known:
        return
    _secrets[name] = (*known, (secret, user))[-KEPT:]
    seen = None
    while seen != _secrets:  # another thread may have added one
        seen = _secrets.copy()
        forms = {form for values in seen.values() for value in values for form in _forms(*value)}
        _mask = re.compile("|".join(map(_pattern, sorted(forms, key=len, reverse=True))))


def rename(by: Callable[[str], str]) -> None:
    """Put other names of settings in place of their variables from now on."""
    global _rename
    _rename = by


def concealed(text: str) -> str:
    """Return the text with all secrets masked, and with settings named by where their values stand."""
    text = _rename(text)
    return text if _mask is None else _mask.sub(MASK, text)


def _forms(secret: str, user: str | None) -> set[str]:
    plain = {secret, *(line for line in secret.splitlines() if len(line) >= SHORT)}  # a key has many lines
    raw = secret.encode("utf-8", "surrogateescape")  # an environment variable need not be UTF-8
    basic = base64.b64encode((user or "").encode("utf-8", "surrogateescape") + b":" + raw).decode()
    return {*plain, basic}


def _pattern(form: str) -> str:
    pattern = "".join(map(_character, form))
    return pattern if len(form) >= SHORT else rf"{_BEFORE_A_WORD}{pattern}(?!\w)"


@cache
def _character(character: str) -> str:
    """Match a character as it is, and as URLs, JSON, HTML and programming languages write it.

    Who quotes a request may escape more than is necessary, and in upper or lower case.
    """
    if character.isascii() and character.isalnum():
        return character
    raw = character.encode("utf-8", "surrogateescape")
    units = character.encode("utf-16-be", "surrogatepass")
    code = ord(character)
    numbers = [
        "".join(f"%{byte:02x}" for byte in raw),
        "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)),
        "".join(f"\\x{byte:02x}" for byte in raw),
        f"\\x{code:02x}",
        f"&#x{code:x};",
    ]
    written = [
        character,
        f"\\{character}",
        repr(character)[1:-1],
        json_dumps(character, ensure_ascii=False)[1:-1],
        f"&#{code};",
        *(f"&{name}" for name, named in html5.items() if named == character and name.endswith(";")),
        *("+" if character == " " else ""),
    ]
    insensitive = "|".join(map(re.escape, numbers))
    return f"(?:{'|'.join(map(re.escape, dict.fromkeys(written)))}|(?i:{insensitive}))"
