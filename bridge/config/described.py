"""What the settings mean, for pages and files that show them: docstrings and types of their models."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from bridge.config.loader import Settings


@dataclass(frozen=True)
class Setting:
    """One setting: its name, its meaning and an example of a value."""

    name: str
    meaning: str
    example: Any


def sections() -> list[tuple[str, type[BaseModel]]]:
    """Name and model of each section, in order."""
    return [(name, type(field.default)) for name, field in Settings.model_fields.items()]


def settings(model: type[BaseModel]) -> Iterator[Setting]:
    """The settings of a section, its own before those it shares. Raises ValueError without a docstring."""
    meanings: dict[str, str] = {}
    for one in model.__mro__[: model.__mro__.index(BaseModel)]:
        meanings |= _docstrings(one)
    for name in sorted(model.model_fields, key=list(meanings).index):
        yield Setting(name, meanings[name], (model.model_fields[name].examples or [None])[0])


def as_toml(value: Any) -> str:
    """A value as TOML has it. JSON is the same for all but tables and whole floats."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def as_comment(text: str) -> list[str]:
    """The lines of a comment. A link becomes its path, and what is in backticks stays on one line."""
    plain = re.sub(r"\[[^]]*\]\(([^)#]+)(#[^)]*)?\)", r"docs/\1", text)
    glued = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), plain)
    lines = textwrap.wrap(glued, width=116, break_long_words=False, break_on_hyphens=False)
    return [f"# {line}".replace("\0", " ") for line in lines]


def prose(docstring: str | None) -> str:
    """Return a docstring as one line."""
    return " ".join((docstring or "").split())


def _docstrings(model: type) -> dict[str, str]:
    """Field → the docstring that follows it in the source."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: prose(text.value.value)
        for field, text in zip(body.body, body.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def file_of(given: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a settings file: the settings named, by section, with what they mean.

    One whose value is None is a comment with an example. Properties of librdkafka come as they are.
    """
    lines = list[str]()
    for section, model in sections():
        values = dict(given.get(section, {}))
        lines += ["", f"[{section}]"] if values else []
        for one in settings(model):
            if one.name in values:
                value = values.pop(one.name)
                set_to = f"#{one.name} = {as_toml(one.example)}" if value is None else _line(one.name, value)
                lines += ["", *as_comment(one.meaning), set_to]
        lines += ["", "# librdkafka's: docs/kafka.md."] if values else []
        lines += [_line(name, value) for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _line(name: str, value: Any) -> str:
    return f"{name} = {as_toml(value)}"
