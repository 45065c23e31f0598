"""Reads and validates the settings. The only module that reads `BRIDGE_…` variables.

Environment variables (`BRIDGE_…`, `__` between levels) take precedence over the TOML file, and that over the
defaults. A secret can be given by the path of a file (`…_FILE`), which is read at each use, so
that a rotated secret is picked up. Secrets are registered with the log, which masks them.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from pydantic import BaseModel, PrivateAttr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from bridge.config import tls
from bridge.config.api import ApiSettings
from bridge.config.feed import FeedSettings
from bridge.config.fields import TlsSection
from bridge.config.files import read_bytes
from bridge.config.kafka import KafkaSettings
from bridge.config.names import ENV_PREFIX, env_name
from bridge.config.secrets import Secret
from bridge.config.sections import (
    BatchSettings,
    LimitsSettings,
    RegistrySettings,
    TopicsSettings,
    WebSettings,
)
from bridge.config.times import age_seconds, is_age, parse_start
from bridge.errors import SettingsError
from bridge.formatting import format_duration, plain_error, shortened
from bridge.masking import conceal, rename

FILE_VARIABLE: Final = f"{ENV_PREFIX}CONFIG"
_DEFAULT_FILE: Final = Path("bridge.toml")
_BEFORE_CONNECT_SECONDS = 30
"""Time until an attempt is committed and the bridge connects, and for rounding."""


_VARIABLE: Final = re.compile(r"\((BRIDGE_[^()\s]*)\)|\b(BRIDGE_[A-Z]+__\w+)")


class _Origin(NamedTuple):
    """Where the settings come from."""

    file: Path | None = None
    of_file: Mapping[str, str] = {}
    """Variable → name of each setting and section that the file has and the environment has not."""

    def rename(self, text: str) -> str:
        """Put the file in place of the variable of a setting that it has."""

        def place(found: re.Match[str]) -> str:
            name = self.of_file.get(found[1] or found[2])
            if name is None:
                return found[0]
            if found[2]:
                return f"{name} ({self.file})"
            before = text[max(0, found.start() - len(name) - 1) : found.start()]
            is_named = before.rstrip().endswith(name)
            return f"({self.file})" if is_named else f"({name} in {self.file})"

        return _VARIABLE.sub(place, text) if self.of_file else text

    def name_the_file(self, error: str) -> str:
        """Do the same in the error of a setting, and add the file to a line that names no variable."""
        lines = self.rename(error).splitlines()
        vague = [self.file and str(self.file) not in line and ENV_PREFIX not in line for line in lines]
        return "\n".join(f"{a} ({self.file})" if b else a for a, b in zip(lines, vague, strict=True))


class Settings(BaseSettings):
    """All settings of the bridge. Read them with `load`, once."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=False,
    )

    feed: FeedSettings = FeedSettings()
    limits: LimitsSettings = LimitsSettings()
    kafka: KafkaSettings = KafkaSettings()
    registry: RegistrySettings = RegistrySettings()
    topics: TopicsSettings = TopicsSettings()
    api: ApiSettings = ApiSettings()
    batch: BatchSettings = BatchSettings()
    web: WebSettings = WebSettings()
    _origin: _Origin = PrivateAttr(default=_Origin())

    @property
    def file(self) -> Path | None:
        """The TOML file that was read, if any."""
        return self._origin.file

    @model_validator(mode="after")
    def _starts_within_memory(self) -> Self:
        feed, start, memory = self.feed, self.feed.start, self.limits.memory_seconds
        late = feed.max_clock_skew_seconds + feed.connect_timeout_seconds + _BEFORE_CONNECT_SECONDS
        if is_age(start) and age_seconds(start) > memory - late:
            raise ValueError(
                f"feed.start (BRIDGE_FEED__START) = {shortened(start)} is beyond the feed's memory of "
                f"{format_duration(memory)}: it will be too old when the bridge connects. Choose a little "
                f"less, such as {format_duration(min(memory * 71 / 72, memory - late))}."
            )
        return self

    @model_validator(mode="after")
    def _margins_within_memory(self) -> Self:
        feed, memory = self.feed, self.limits.memory_seconds
        margins = {
            "safety_margin_seconds": feed.safety_margin_seconds,
            "max_out_of_orderness_seconds": feed.max_out_of_orderness_seconds,
            "max_clock_skew_seconds": feed.max_clock_skew_seconds,
            "connect_timeout_seconds": feed.connect_timeout_seconds,
        }
        if sum(margins.values()) + _BEFORE_CONNECT_SECONDS >= memory:
            given = ", ".join(f"{name} = {seconds:g}" for name, seconds in margins.items())
            raise ValueError(
                f"feed: {given} are too long for limits.max_age_seconds / limits.scale = "
                f"{format_duration(memory)}: the revision that the bridge requests must be within the feed's "
                "memory"
            )
        return self

    def require(self, *names: str) -> None:
        """Raise SettingsError if a setting named (`feed.base_url`) or a file of its section is unusable."""
        sections = dict.fromkeys(name.partition(".")[0] for name in names)
        if problems := self.missing(*names) + self.unusable(*sections):
            raise SettingsError("\n".join(problems))

    def missing(self, *names: str) -> list[str]:
        """Return a line for each of the settings named that has no value: how to set it."""
        problems = []
        for name in names:
            section, _, key = name.partition(".")
            given, variable = getattr(self, section), env_name(section, key)
            if hasattr(given, f"{key}_file"):
                if getattr(given, f"{key}_file"):
                    continue
                variable += "(_FILE)"
            if not getattr(given, key):
                where = f"{key} under [{section}] in {self.file or 'the file given by --config'}"
                problems.append(f"{name} is not set. Set {variable}, or {where}.")
        return problems

    def unusable(self, *sections: str) -> list[str]:
        """Return a line for each secret and each section's certificates that cannot be used."""
        problems = []
        for secret in self.secrets(*sections):
            try:
                if not secret.read():
                    problems.append(f"{secret.variable} is empty")
            except SettingsError as error:
                problems.append(str(error))
        for section in sections:
            given = getattr(self, section)
            if isinstance(given, TlsSection) and (given.ca_file or given.client_certificate_file):
                try:
                    tls.context(section, given)
                except SettingsError as error:
                    problems.append(str(error))
        return [self._origin.name_the_file(problem) for problem in problems]

    def secrets(self, *sections: str) -> Iterator[Secret]:
        """Yield the secrets in use in these sections."""
        for section in sections:
            yield from getattr(self, section).secrets()


RENAMED: Final = {
    "feed.silence_seconds": "feed.idle_timeout_seconds",
    "feed.quiet_seconds": "feed.live_after_pings_seconds",
    "feed.disorder_seconds": "feed.max_out_of_orderness_seconds",
    "feed.overlap_seconds": "feed.safety_margin_seconds",
    "feed.may_be_missing": "feed.optional_fields",
    "feed.max_skew_seconds": "feed.max_clock_skew_seconds",
    "api.max_skew_seconds": "api.max_clock_skew_seconds",
}
"""Old name of a setting → new name. An old name is refused."""
REMOVED: Final = {
    "feed.converter": "every message takes the fastest path that accepts it",
}
"""Former setting → why it is not needed. It is refused."""


def load(config: str | os.PathLike[str] | None = None) -> Settings:
    """Read the settings from the environment and a TOML file.

    The file is `config`, by default that of BRIDGE_CONFIG (none if that is empty), or ./bridge.toml if that
    exists. Raises SettingsError with one line for each wrong setting: its name, the error and the fix.
    """
    _reject_unknown_variables(os.environ)
    _reject_invalid_json(os.environ)
    file = _file_to_read(config)
    given = {} if file is None else _parse(file)
    origin = _Origin(file, _names_in(given))
    rename(origin.rename)

    class Sourced(Settings):
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *_: Any, **sources: Any
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return sources["env_settings"], InitSettingsSource(settings_cls, given)

    try:
        settings = Sourced()
        settings._origin = origin
        _conceal_passwords_in_addresses(settings)
        if (parse_start(settings.feed.start, now := time.time()) or 0) > now:
            raise SettingsError(f"feed.start (BRIDGE_FEED__START) = {settings.feed.start} is in the future")
        return settings
    except ValidationError as error:
        lines = "\n".join(_explain(it, origin) for it in _distinct(error.errors()))
        raise SettingsError(origin.name_the_file(lines)) from None
    except SettingsError as error:
        raise SettingsError(origin.name_the_file(str(error))) from None
    except (ValueError, RecursionError) as error:  # a variable that is not all capitals
        raise SettingsError(f"the settings cannot be read: {error}") from None


def _file_to_read(config: str | os.PathLike[str] | None) -> Path | None:
    if config is None and FILE_VARIABLE not in os.environ:
        return _DEFAULT_FILE if os.access(_DEFAULT_FILE, os.F_OK) else None
    given = os.environ[FILE_VARIABLE] if config is None else config
    return Path(given) if given else None


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_bytes(file).decode())
    except FileNotFoundError:
        raise SettingsError(f"there is no settings file {file}; `bridge init` begins one") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or plain_error(error)
        raise SettingsError(f"the settings file {shortened(str(file))} cannot be read: {reason}") from None


def _names_in(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the variable → name of each setting and section that the environment does not have."""
    tables = {section: table if isinstance(table, dict) else {} for section, table in given.items()}
    paths = [
        path for section, table in tables.items() for path in ((section,), *((section, k) for k in table))
    ]
    of_environment = {*map(str.upper, os.environ)}
    return {
        env_name(*path): ".".join(path)
        for path in paths
        if of_environment.isdisjoint({env_name(*path), env_name(path[0])})
    }


def _conceal_passwords_in_addresses(settings: Settings) -> None:
    """Mask these passwords in the log. Other secrets are registered when they are read."""
    feed, api = settings.feed, settings.api
    given = feed.base_url, feed.proxy, api.base_url, api.proxy
    of_registry = settings.registry.url, settings.registry.token_endpoint_url
    for address in (*given, *of_registry, *getproxies().values()):
        with contextlib.suppress(ValueError):
            url = urlsplit(address or "")
            for read in (str, unquote):
                user, password = read(url.username or ""), read(url.password or "")
                conceal(password, f"{read.__name__} of {url.hostname}", user)


def _reject_invalid_json(environ: Mapping[str, str]) -> None:
    """Name the variable that should be JSON and is not; pydantic-settings names only its section."""
    examples = {env_name(section): '{"…": "…"}' for section in Settings.model_fields}
    for section, field in Settings.model_fields.items():
        for key in _names((section,)):
            if isinstance(getattr(field.default, key), tuple | frozenset | dict):
                examples[env_name(section, key)] = _example(section, key)
    for name in examples.keys() & environ.keys():
        try:
            json.loads(environ[name])
        except (ValueError, RecursionError):
            raise SettingsError(f"{name} must be JSON, such as {examples[name]}") from None


def _example(section: str, key: str, colon: str = ": ") -> str:
    """Return a value of a setting as JSON, which is TOML if the colon of a table is ` = `."""
    field = _model(section).model_fields[key]
    value = (field.examples or [field.default])[0]
    if isinstance(value, tuple | frozenset):
        value = [*value][:2]
    return json.dumps(value, separators=(", ", colon), ensure_ascii=False)


def _distinct(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out that a list is too short where its invalid entries are reported."""
    entries = {error["loc"][:-1] for error in errors}
    return [error for error in errors if error["type"] != "too_short" or error["loc"] not in entries]


_TYPES: Final = {
    "tuple": "a list",
    "frozen_set": "a list",
    "dict": "a table",
    "model": "a table",
    "string": "text",
    "path": "a path",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
"""Beginning of the name of an error → what the value must be."""


def _explain(error: ErrorDetails, origin: _Origin) -> str:
    path, kind = tuple(map(str, error["loc"][:2])), error["type"]
    message = re.sub(r"^\w+ should ", "must ", error["msg"].removeprefix("Value error, "))
    if kind.startswith(("greater_than", "less_than", "finite_number")):  # a number, so no secret
        message += f", not {error['input']}"
    if kind == "literal_error":  # nor is one of several words
        message += f", not {shortened(repr(error['input']))}"
    if not path:
        return message
    where, variable = ".".join(path), env_name(*path)
    if (wrong := re.fullmatch(r"([a-z_]+)_(type|parsing|from_float)", kind)) and wrong[1] in _TYPES:
        colon = " = " if variable in origin.of_file else ": "
        example = _example(path[0], path[1], colon) if len(path) > 1 else f"[{where}]"
        message = f"must be {_TYPES[wrong[1]]}, such as {example}"
    if kind == "extra_forbidden":
        if where in RENAMED:
            new = tuple(RENAMED[where].split("."))
            return f"{where} ({variable}) is now called {RENAMED[where]} ({env_name(*new)})"
        if where in REMOVED:
            return f"{where} ({variable}) is no longer a setting: {REMOVED[where]}. Remove it."
        close = difflib.get_close_matches(path[-1], _names(path[:-1]), n=1)
        likely = [".".join((*path[:-1], name)) for name in close]
        likely += [
            f"{section}.{path[-1]}" for section in Settings.model_fields if path[-1] in _names((section,))
        ]
        hint = f"; did you mean {likely[0]}?" if likely else "; remove it"
        return f"{where} ({variable}) is not a setting{hint}"
    return f"{where} ({variable}): {message}" if len(path) > 1 else f"{where}: {message}"


def _names(section: tuple[str, ...]) -> list[str]:
    if not section:
        return list(Settings.model_fields)
    return list(_model(section[0]).model_fields) if section[0] in Settings.model_fields else []


def _model(section: str) -> type[BaseModel]:
    return type(Settings.model_fields[section].default)


def _reject_unknown_variables(environ: Mapping[str, Any]) -> None:
    """Refuse a variable of an unknown section, such as a typo; pydantic-settings ignores it."""
    sections = [FILE_VARIABLE, *(env_name(section) for section in Settings.model_fields)]
    for name in environ:
        if name.upper().startswith(ENV_PREFIX) and name.upper().split("__")[0] not in sections:
            known = [
                env_name(section, key) for section in Settings.model_fields for key in _names((section,))
            ]
            close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.8)
            near = difflib.get_close_matches(name.upper().split("__")[0], sections, n=1, cutoff=0.8)
            likely = [*close, *(f"{section}__…" if section != FILE_VARIABLE else section for section in near)]
            hint = f". Did you mean {likely[0]}?" if likely else ""
            raise SettingsError(f"{name} is not a setting of the bridge{hint}")
