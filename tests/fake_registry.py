"""A schema registry in memory, behind a local HTTP server, that answers as one of those in `PROFILES`."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.tools import serves


class Profile(NamedTuple):
    """In what registries differ, by default as Confluent's documentation says."""

    name: str
    first_id: int = 100
    level: str = "BACKWARD"
    """Of the compatibility, where none was set."""
    no_level: int = 40408
    """The code for a subject without a level of its own."""
    ignored: frozenset[str] = frozenset()
    """Keys that make no other schema: one that differs in them alone gets the id of the one that is there."""
    normalizes: bool = True
    """Whether full names, or names with a namespace, make no other schema if the client asks for that."""
    read_only: str = "kept"
    """What becomes of the mode READONLY: `kept`, `shown` and not kept, or `refused`."""
    unauthorized: Mapping[str, object] = {"error_code": 40101, "message": "Unauthorized"}


CONFLUENT = Profile("Confluent")
PROFILES = (
    CONFLUENT,
    Profile("Karapace", 1, "BACKWARD", 40401, frozenset(), False, "refused", {"message": "Unauthorized"}),
    Profile("Redpanda", 1, unauthorized={"message": "Unauthorized", "code": 401}),
    Profile("axonops", 1, ignored=frozenset({"doc", "aliases", "default", "mine"}), normalizes=False),
)
APICURIO = Profile(
    "Apicurio", 1, "NONE", 40401, frozenset({"doc", "aliases", "default"}), read_only="shown", unauthorized={}
)
"""The real one in the tests on Kafka is held to it."""


class FakeRegistry:
    """Subjects with their versions. `refusal`, if set, decides first."""

    def __init__(self, profile: Profile = CONFLUENT) -> None:
        self.profile = profile
        self.versions: dict[str, list[str]] = {}
        self._schemas: list[str] = []
        """By their ids."""
        self.compatibility: dict[str, str] = {}
        self.mode = "READWRITE"
        self.password: str | None = None
        """Which everybody has to give, with any user, or as a bearer token."""
        self.users: set[str | None] = set()
        self.clusters: set[tuple[str | None, str | None]] = set()
        """Logical cluster and identity pool, as Confluent Cloud is told them."""
        self.names: list[str] = []
        """Of the clients with another certificate than the last one."""
        self.refusal: Callable[[str, str], tuple[int, Any] | None] = lambda method, path: None
        self.requests = 0

    @property
    def subjects(self) -> dict[str, str]:
        """The last version of each. Those that are set are the only ones, with ids by their order."""
        return {name: texts[-1] for name, texts in self.versions.items()}

    @subjects.setter
    def subjects(self, subjects: Mapping[str, str]) -> None:
        self.versions = {name: [text] for name, text in subjects.items()}
        self._schemas = [*subjects.values()]

    def answer(self, method: str, path: str, body: Any, user: str | None = None) -> tuple[int, Any]:
        self.requests += 1
        self.users.add(user)
        if refused := self.refusal(method, path):
            return refused
        if self.password is not None and (user or "").rpartition(":")[2] != self.password:
            return 401, self.profile.unauthorized
        path, _, query = path.partition("?")
        body = {**(body or {}), "normalize": self.profile.normalizes and "normalize=true" in query.lower()}
        match path.strip("/").split("/"):
            case ["subjects", name, *rest]:
                return self._of_subject(method, name, rest, body)
            case ["schemas", "ids", number] if number in (known := self._known()):
                return 200, {"schema": known[number]}
            case ["mode"]:
                if self.profile.read_only == "refused":
                    return refusal(405, 405)
                self.mode = body["mode"]
                return 200, body
            case ["config", *name]:
                return self._level(method, "".join(name), body)
        return refusal(404, 40403)

    def _known(self) -> dict[str, str]:
        return {str(self.profile.first_id + index): text for index, text in enumerate(self._schemas)}

    def _level(self, method: str, name: str, body: Any) -> tuple[int, Any]:
        if method == "PUT" and name in self.versions:
            self.compatibility[name] = body["compatibility"]
            return 200, body
        level = self.compatibility.get(name) if name else self.profile.level
        return (200, {"compatibilityLevel": level}) if level else refusal(404, self.profile.no_level)

    def _of_subject(self, method: str, name: str, rest: list[str], body: Any) -> tuple[int, Any]:
        versions = self.versions.get(name, [])
        match method, rest:
            case "POST", ["versions"]:
                return self._register(name, body)
            case _ if not versions:
                return refusal(404, 40401)
            case "GET", ["versions"]:
                return 200, [*range(1, len(versions) + 1)]
            case "GET", ["versions", number] if 0 < int(number) <= len(versions):
                return 200, self._version(name, int(number))
            case "POST", [] if found := self._find(versions, body):
                return 200, self._version(name, found)
            case "DELETE", []:
                return 200, [*range(1, len(self.versions.pop(name)) + 1)]
        return refusal(404, 40403)

    def _register(self, name: str, body: Any) -> tuple[int, Any]:
        if self.mode == "READONLY" and self.profile.read_only == "kept":
            return refusal(422, 42205, f"Subject {name} is in read-only mode")
        versions, text = self.versions.get(name, []), body["schema"]
        if found := self._find(versions, body):
            return 200, {"id": self._version(name, found)["id"]}
        others = [record_name(version) for version in versions]
        level = self.compatibility.get(name, self.profile.level)
        if others and level != "NONE" and record_name(text) not in others:
            return refusal(409, 409, "incompatible")
        self.versions[name] = [*versions, text]
        if text not in self._schemas:
            self._schemas.append(text)
        return 200, {"id": self._version(name, len(versions) + 1)["id"]}

    def _version(self, name: str, number: int) -> dict[str, Any]:
        text = self.versions[name][number - 1]
        schema_id = self.profile.first_id + self._schemas.index(text)
        return {"subject": name, "version": number, "id": schema_id, "schema": text}

    def _find(self, versions: list[str], body: Any) -> int:
        """The number of the version that is taken for the same, 0 for none."""
        keys = [self._key(json.loads(text), body["normalize"]) for text in (*versions, body["schema"])]
        return (keys.index(keys[-1]) + 1) % len(keys)

    def _key(self, node: Any, normalize: bool) -> Any:
        if isinstance(node, list):
            return [self._key(item, normalize) for item in node]
        if not isinstance(node, dict):
            return node
        ignored = self.profile.ignored
        kept = {key: self._key(value, normalize) for key, value in node.items() if key not in ignored}
        if normalize and "namespace" in kept:
            kept["name"] = f"{kept.pop('namespace')}.{kept['name']}"
        return kept


def refusal(status: int, code: int, message: str = "Schema not found") -> tuple[int, Any]:
    """What a registry answers instead."""
    return status, {"error_code": code, "message": message}


def record_name(text: str) -> str:
    """The name of a schema without its namespace."""
    return str(json.loads(text).get("name")).rpartition(".")[2]


@contextmanager
def served(fake: FakeRegistry, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve the fake over HTTP or HTTPS; its address."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            user = self.headers.get("Authorization")
            fake.clusters.add(
                (self.headers.get("target-sr-cluster"), self.headers.get("Confluent-Identity-Pool-Id"))
            )
            if isinstance(self.connection, ssl.SSLSocket) and (shown := self.connection.getpeercert()):
                name = str(shown["subject"][0][0][1])
                if fake.names[-1:] != [name]:
                    fake.names.append(name)
            scheme, _, known = (user or "").partition(" ")
            known = base64.b64decode(known).decode() if scheme == "Basic" else known
            status, answer = fake.answer(self.command, self.path, body, known or None)
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 - the names that http.server looks for

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as inherited
            """Do not log requests."""

    with serves(ThreadingHTTPServer(("127.0.0.1", 0), Handler), tls) as address:
        yield address
