"""The command that begins a settings file: from options, or from questions on a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer

from bridge.cli.inspection import doctor
from bridge.cli.output import Config, print_note, print_text
from bridge.config import load
from bridge.errors import SettingsError

HEAD = """\
# Settings of settlement-bridge, begun by `bridge init`. All others: docs/configuration.md.
# Secrets are in files of their own, or in variables such as BRIDGE_KAFKA__SASL_PASSWORD.
"""
START = "71h"
"""Nearly all that the provider keeps."""
QUESTIONS = {
    "provider": "Address of the provider, such as https://provider.example",
    "token_file": "File with the provider's token (empty: it needs none)",
    "bootstrap_servers": "Kafka's brokers, such as broker-1:9093,broker-2:9093",
    "security": "Kafka's security.protocol: PLAINTEXT, SSL, SASL_SSL or SASL_PLAINTEXT",
    "ca_file": "File with Kafka's certificate authority (empty: a public one)",
    "username": "Kafka's user",
    "password_file": "File with this user's password",
    "registry": "Address of the schema registry, such as https://registry.example",
    "prefix": "Prefix of the topics",
}
DEFAULTS = {"security": "PLAINTEXT", "prefix": "settlement"}
NEEDED = ("provider", "bootstrap_servers", "registry")
FILES = ("token_file", "ca_file", "password_file")
USED_WITH = {"username": "SASL", "password_file": "SASL", "ca_file": "SSL"}
"""What the protocol has to hold for an answer to be of use."""


def _path(help_: str) -> Any:
    return typer.Option(metavar="FILE", help=help_)


def init(
    config: Config = None,
    provider: Annotated[str | None, typer.Option(metavar="URL", help="Address of the provider.")] = None,
    token_file: Annotated[Path | None, _path("The provider's token, for the feed and the names.")] = None,
    bootstrap_servers: Annotated[str | None, typer.Option(metavar="HOSTS", help="Kafka's brokers.")] = None,
    security: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT"] | None,
        typer.Option(help="Kafka's security.protocol; SASL is SCRAM-SHA-512."),
    ] = None,
    ca_file: Annotated[Path | None, _path("Kafka's certificate authority, if it is not public.")] = None,
    username: Annotated[str | None, typer.Option(metavar="NAME", help="Kafka's user.")] = None,
    password_file: Annotated[Path | None, _path("The password of this user.")] = None,
    registry: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the schema registry.")
    ] = None,
    prefix: Annotated[str | None, typer.Option(metavar="PREFIX", help="Prefix of the topics.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Begin a settings file for your own provider and cluster, and run `bridge doctor` on it.

    Without --provider, --bootstrap-servers and --registry it asks on a terminal. Writes ./bridge.toml, or the
    file of --config, and no secret into it: files with secrets are named. Exit 1 if the doctor finds trouble.
    """
    file = config or Path(os.environ.get("BRIDGE_CONFIG") or "bridge.toml")
    if file.exists() and not force:
        raise SettingsError(f"{file} is there already: --force overwrites it, --config names another file")
    given = {name: value for name, value in locals().items() if name in QUESTIONS}
    answers = _answers(given)
    text = HEAD + _file(answers)
    with TemporaryDirectory() as directory:
        (draft := Path(directory, "bridge.toml")).write_text(text, "utf-8")
        try:
            load(draft)
        except SettingsError as error:
            raise SettingsError(str(error).replace(str(draft), str(file))) from None
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror}") from None
    print_text(f"{file} is written. `bridge doctor` says of it:\n")
    doctor(file)


def _answers(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options, and an answer for each that is missing. Raises SettingsError."""
    missing = [f"--{name.replace('_', '-')}" for name in NEEDED if not given[name]]
    if missing and not sys.stdin.isatty():
        raise SettingsError(f"{', '.join(missing)} must be given: there is no terminal to ask on")
    answers = dict[str, Any]()
    for name, question in QUESTIONS.items():
        value, default = given[name], DEFAULTS.get(name, "")
        protocol = answers.get("security", "SASL_SSL")
        is_asked = bool(missing) and value is None and USED_WITH.get(name, "") in protocol
        while True:
            if is_asked:
                value = typer.prompt(question, default=default, show_default=bool(default), err=True)
            answers[name] = str(value or default).strip()
            if not (why := _refusal(name, answers)):
                break
            if not is_asked:
                raise SettingsError(f"--{name.replace('_', '-')} {why}")
            print_note(f"It {why}.")
    # Not resolved: a link to a secret may be changed to another one.
    found = {name: os.path.abspath(path) for name in FILES if (path := answers[name])}  # noqa: PTH100
    return answers | found


def _refusal(name: str, answers: dict[str, Any]) -> str:
    """Return why an answer is refused, "" if it is not. What may be a secret is not shown."""
    value, protocol = answers[name], answers.get("security", "")
    if value and USED_WITH.get(name, "") not in protocol:
        return f"is not used with --security {protocol}"
    if value and name in FILES and not os.path.isfile(value):  # noqa: PTH113  # raises nothing
        return "is not a file: write it first, then begin again"
    if name in ("provider", "registry"):
        if "@" in value:
            return (
                "has a user or password: leave it out, and give it by a file, such as registry.password_file "
                "or feed.auth_value_file (docs/configuration.md)"
            )
        if "://" not in value:
            return "is not an address such as https://provider.example"
    return ""


def _file(answers: dict[str, Any]) -> str:
    from bridge.config.described import file_of

    token, is_sasl = answers["token_file"] or None, answers["security"].startswith("SASL")
    kafka = {"bootstrap_servers": answers["bootstrap_servers"], "security_protocol": answers["security"]}
    kafka |= {"ssl_ca_location": answers["ca_file"]} if answers["ca_file"] else {}
    if is_sasl:
        kafka |= {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": answers["username"]}
        kafka |= {"sasl_password_file": answers["password_file"]}
    auth = "bearer" if token else "none"
    return file_of(
        {
            "feed": {
                "base_url": answers["provider"],
                "start": START,
                "auth": auth,
                "auth_value_file": token,
            },
            "kafka": {name: value for name, value in kafka.items() if value},
            "registry": {"url": answers["registry"], "user": None, "password_file": None},
            "topics": {"prefix": answers["prefix"]},
            "api": {"base_url": answers["provider"], "token_file": token, "languages": ["en"]},
        }
    )
