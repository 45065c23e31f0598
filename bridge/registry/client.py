"""The schema registry: the only module that calls it.

The bridge needs the registry at the start, for the ids of its schemas, and later only for a record with an
unknown schema id. An id never changes its schema, so schemas are cached, and the registry may be
unavailable.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from math import inf
from typing import Final, Self, TypeVar
from urllib.parse import urlsplit

from confluent_kafka.schema_registry import Schema as RegistrySchema
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError

from bridge.avro.codec import Codec, Codecs, reading
from bridge.avro.evolution import differences, unlike
from bridge.avro.schemas import TOPICS, Fields, Schema, load, subject
from bridge.config import RegistrySettings, env_name, proxy_of, tls
from bridge.config.files import hazard
from bridge.config.secrets import digest
from bridge.errors import (
    BridgeError,
    ForeignRecord,
    IdsChanged,
    RegistryUnavailable,
    SchemaError,
    SchemaNotFound,
    SettingsError,
    TopologyError,
)
from bridge.formatting import plain_error, shortened
from bridge.log import get
from bridge.masking import concealed
from bridge.registry.issuer import Issuer

_COMPATIBILITY: Final = "FULL_TRANSITIVE"
_TIMEOUT_SECONDS: Final = 10
_CONFLICT_SECONDS: Final = 0.5
T = TypeVar("T")
_RETRY_WAIT_MS: Final = 100
_UNREADABLE: Final = (403, 404, 405)
"""Answers after which what should be there is written."""
_TRANSIENT: Final = (408, 429, 500, 502, 503, 504)
_LAG_SECONDS: Final = 2.0
"""How long a registry may take to know on all its servers what one of them has registered."""
_LAG_STEP_SECONDS: Final = 0.2
_UNKNOWN_SECONDS: Final = 60.0
"""How long an unknown id is not asked for again, and how rarely a lag is waited for."""
_SETTINGS: Final = {
    "http": "registry.url",
    "https": "registry.url, registry.ca_file or registry.client_certificate_file",
}
"""To check when nothing answers, by the scheme of the address."""
TO_UPGRADE: Final = "Upgrade the bridge if it is older than the running one, or choose another topics.prefix."
TO_TELL_APART: Final = (
    "Records would be read with that one. Go back to the version of the bridge before, or see "
    '"Registry" in docs/kafka.md.'
)
OF_OWNER: Final = ("settled-bet", "feed-checkpoint", "feed-gap")
"""In the order of `Codecs`."""


_accepted: set[RegistrySettings] = set()
"""Settings with which a client could be created before."""


class Compatibility(Enum):
    """Whether a registry has, or would accept, one of our schemas."""

    REGISTERED = "registered"
    NEW = "not registered yet"
    COMPATIBLE = "a new version that would be accepted"
    INCOMPATIBLE = "not compatible with the registered versions"
    ALTERED = "taken for another schema, which the registry has under the same id"
    UNKNOWN = "a new version; the registry does not show the earlier ones"


class Registry:
    """A client of a registry with Confluent's API. Its calls block.

    Raises SettingsError if there is no address, or if a file named in the settings cannot be used;
    RegistryUnavailable if it could be used before.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        if not settings.url:
            raise SettingsError(f"registry.url is not set. Set {env_name('registry', 'url')}.")
        url = urlsplit(settings.url)
        self.address = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
        """Without user and password."""
        self._settings = settings
        self._made_with: bytes | None = None
        """The digest of what the client was made with."""
        self._made: SchemaRegistryClient | None = self._make()
        self._schemas: dict[int, Schema] = {}
        self._unknown: dict[int, tuple[float, str]] = {}
        """Ids unknown to the registry, since when (monotonic seconds), and its error.

        Foreign records may repeat an id a thousand times.
        """
        self._waited_at = -inf
        """When a lag was last waited for, monotonic seconds."""

    @property
    def _client(self) -> SchemaRegistryClient:
        """The client; a new one after a failure, and for another password or certificate."""
        if self._made is None or self._digest() not in (self._made_with, None):
            self.close()
            self._made = self._make()
        return self._made

    def _make(self) -> SchemaRegistryClient:
        settings = self._settings
        properties: dict[str, object] = {
            "url": settings.url,
            "timeout": _TIMEOUT_SECONDS,
            "retries.wait.ms": _RETRY_WAIT_MS,
        }
        self._made_with = self._digest()
        if settings.user is not None and not settings.token_endpoint_url:
            properties["basic.auth.user.info"] = f"{settings.user}:{settings.secret.read()}"
        elif settings.secret.is_given:
            read = Issuer(settings).token if settings.token_endpoint_url else settings.secret.read
            # Only a cloud has logical clusters, but the client insists on one.
            fields = {"bearer.auth.logical.cluster": settings.logical_cluster or ""}
            if settings.identity_pool:
                fields["bearer.auth.identity.pool.id"] = settings.identity_pool
            properties |= {
                "bearer.auth.credentials.source": "CUSTOM",
                "bearer.auth.custom.provider.function": lambda fields: fields | {"bearer.auth.token": read()},
                "bearer.auth.custom.provider.config": fields,
            }
        files = {
            "ssl.ca.location": settings.ca_file,
            "ssl.certificate.location": settings.client_certificate_file,
            "ssl.key.location": settings.client_key_file,
        }
        properties |= {name: str(file) for name, file in files.items() if file is not None}
        if proxy := proxy_of("registry", self._settings.url or ""):
            properties["proxy"] = proxy
        try:
            for file in filter(None, files.values()):
                if reason := hazard(file):
                    raise ValueError(f"{file}: {reason}")
            client = SchemaRegistryClient(properties)
            tls.lenient(client._rest_client.verify)
        except (OSError, ValueError, TypeError) as error:
            text = f"{_SETTINGS['https']} cannot be used for {self.address}: {plain_error(error)}"
            raise (RegistryUnavailable if settings in _accepted else SettingsError)(text) from None
        _accepted.add(settings)
        return client

    def _digest(self) -> bytes | None:
        """Return a digest of password and files; None while one of these cannot be read."""
        settings = self._settings
        files = settings.ca_file, settings.client_certificate_file, settings.client_key_file
        return digest(settings.secret.read(), filter(None, files))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        if self._made is not None:
            self._made.close()
        self._made = None

    def register(self, topic_prefix: str, names: Iterable[str] = TOPICS) -> dict[str, int]:
        """Register schemas under their topics' subjects; return schema (`settled-bet`) → id.

        What is registered is not written again, keeps its id, and needs no right to write. Raises SchemaError
        if a schema is invalid or incompatible, RegistryUnavailable if no registry answers, TopologyError
        otherwise.
        """
        return {name: self._register(name, subject(topic_prefix, name)) for name in names}

    def compatibility(self, topic_prefix: str, names: Iterable[str] = TOPICS) -> dict[str, Compatibility]:
        """Return subject → standing of its schema, without registering it. Raises like `register`."""
        return {(key := subject(topic_prefix, name)): self._compatibility(key, load(name)) for name in names}

    def codec(self, name: str, fields: Fields | None = None, *, strict: bool = False) -> Codec:
        """As `reading`; asks nothing before the first record."""
        return reading(name, self.schema_by_id, fields, strict=strict)

    def codecs_of_owner(self, topic_prefix: str) -> Codecs:
        """Register the schemas of the records that the owner of a feed writes. Raises like `register`."""
        ids = self.register(topic_prefix, OF_OWNER)
        return Codecs(*(Codec(load(name), ids[name], self.schema_by_id) for name in OF_OWNER))

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return the schema of an id, from the cache once read. Raises like `register`, and ForeignRecord."""
        if schema_id not in self._schemas:
            since, reason = self._unknown.get(schema_id, (-inf, ""))
            if time.monotonic() - since < _UNKNOWN_SECONDS:
                raise SchemaNotFound(reason)
            text = self._ask(schema_id)
            try:
                self._schemas[schema_id] = json.loads(text)
            except (ValueError, RecursionError):  # Protobuf, for example
                raise ForeignRecord(f"schema {schema_id} is not an Avro schema") from None
        return self._schemas[schema_id]

    def _ask(self, schema_id: int) -> str:
        """Return the text of a schema. One that is unknown may have been registered just now: wait for it."""
        began = time.monotonic()
        patience = _LAG_SECONDS if began - self._waited_at > _UNKNOWN_SECONDS else 0.0
        while True:
            try:
                with self._explained(f"schema {schema_id}"):
                    return _given(self._client.get_schema(schema_id).schema_str)
            except SchemaNotFound as error:
                if time.monotonic() - began >= patience:
                    self._unknown[schema_id] = time.monotonic(), str(error)
                    raise
            self._waited_at = began
            time.sleep(_LAG_STEP_SECONDS)

    def _compatibility(self, name: str, schema: Schema) -> Compatibility:
        with self._explained(f"subject {name}"):
            _, versions, schema_id = self._look_up(name, schema)
            if schema_id is None:
                return self._judge(name, versions, schema)
            altered = self._altered(schema, schema_id)
            return Compatibility.ALTERED if altered else Compatibility.REGISTERED

    def _altered(self, schema: Schema, schema_id: int) -> str:
        """Return where the schema that a registry has under our id means something else; "" if nowhere seen.

        Some registries take a schema for an earlier one if a default or an alias is all that differs.
        """
        found = _read(lambda: self._client.get_schema(schema_id))
        try:
            return unlike(schema, json.loads(found.schema_str or "")) if found else ""
        except (SchemaError, ValueError):  # such as a type that is registered elsewhere
            return ""

    def _judge(self, name: str, versions: Sequence[int] | None, schema: Schema) -> Compatibility:
        """Return whether our schema may join these versions: by our rule, whatever the registry has."""
        if versions is None:
            return Compatibility.UNKNOWN
        found = [_read(partial(self._client.get_version, name, version)) for version in versions]
        if not all(one is None or _is_compatible(schema, one.schema) for one in found):
            return Compatibility.INCOMPATIBLE
        if None in found:
            return Compatibility.UNKNOWN
        return Compatibility.COMPATIBLE if found else Compatibility.NEW

    def _register(self, name: str, subject_name: str) -> int:
        schema = load(name)
        with self._explained(f"subject {subject_name}"):
            written, versions, schema_id = self._look_up(subject_name, schema)
            is_there = schema_id is not None
            how = Compatibility.REGISTERED if is_there else self._judge(subject_name, versions, schema)
            if versions:
                self._set_rule(subject_name, how)
            if schema_id is None:
                if how is Compatibility.INCOMPATIBLE:
                    raise SchemaError(
                        f"subject {subject_name}: {Compatibility.INCOMPATIBLE.value}. {TO_UPGRADE}"
                    )
                register = partial(
                    self._client.register_schema, subject_name, written, normalize_schemas=True
                )
                schema_id = _given(self._agree(register))
            if altered := self._altered(schema, schema_id):
                raise SchemaError(
                    f"subject {subject_name}: {Compatibility.ALTERED.value}, {schema_id}; it differs at "
                    f"{altered}. {TO_TELL_APART}"
                )
            if not versions:  # not every registry takes a rule for a subject before its schema
                self._set_rule(subject_name, how)
        self._schemas[schema_id] = schema
        return schema_id

    def _look_up(self, name: str, schema: Schema) -> tuple[RegistrySchema, Sequence[int] | None, int | None]:
        """Return a schema as the client takes it, the versions of its subject, and its id there.

        None where it may not be read. A registry that takes no POST is asked for the versions.
        """
        written = RegistrySchema(json.dumps(schema), "AVRO")
        try:
            versions: Sequence[int] | None = _read(lambda: self._client.get_versions(name), (403, 405))
        except SchemaRegistryError as error:
            if error.http_status_code != 404 or _is_foreign(error):
                raise
            versions = ()
        found = _read(lambda: self._client.lookup_schema(name, written, normalize_schemas=True).schema_id)
        for version in reversed(versions or () if found is None else ()):
            one = _read(partial(self._client.get_version, name, version))
            if one and one.schema.schema_type == "AVRO" and json.loads(one.schema.schema_str or "") == schema:
                return written, versions, one.schema_id
        return written, versions, found

    def _set_rule(self, subject_name: str, how: Compatibility) -> None:
        """Have the registry keep the versions of a subject compatible, unless it does.

        Logs a refusal, but raises where nobody could compare a new version with the earlier ones.
        """
        try:
            rule = None
            with suppress(KeyError):  # the subject has other settings of its own
                rule = _read(lambda: self._client.get_compatibility(subject_name))
            if rule != _COMPATIBILITY:
                self._agree(lambda: self._client.set_compatibility(subject_name, _COMPATIBILITY))
        except SchemaRegistryError as error:
            refused = self._error(f"the compatibility of {subject_name}", error)
            is_new = how is not Compatibility.REGISTERED
            is_away = isinstance(refused, RegistryUnavailable)
            if how is Compatibility.UNKNOWN or error.http_status_code in _TRANSIENT or (is_new and is_away):
                raise
            reason = str(refused)
            get().warning("compatibility of the schemas not set", subject=subject_name, reason=reason)

    def _agree(self, call: Callable[[], T]) -> T:
        """Call, and once more after a conflict: two bridges that start together may cause one."""
        try:
            return call()
        except SchemaRegistryError as error:
            if error.http_status_code != 409:
                raise
        time.sleep(_CONFLICT_SECONDS)
        return call()

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turn the client's errors into ours."""
        try:
            yield
        except SchemaRegistryError as error:
            raise self._error(what, error) from error
        except BridgeError:  # explains itself
            raise
        except (ValueError, TypeError, LookupError, AttributeError) as error:  # no JSON, or not what it has
            self.close()  # the client may have kept the answer
            raise self._no_registry(what, "HTTP 200 and no JSON of a registry") from error
        except Exception as error:  # the errors of the client's HTTP library, which differs by version
            self.close()
            raise RegistryUnavailable(
                f"the schema registry at {self.address} did not answer for {what}: {plain_error(error)}. "
                f"Check {_SETTINGS[self.address.partition(':')[0]]}, and that it is running."
            ) from error

    def _no_registry(self, what: str, answer: str) -> RegistryUnavailable:
        """Return the error for an answer of something else, such as a load balancer without a registry."""
        return RegistryUnavailable(
            f"{self.address} answers {what} with {answer}, as no schema registry does. If it stays, check "
            f"the path of registry.url ({env_name('registry', 'url')}): it ends where Confluent's API "
            "begins, as in https://registry.example, or https://registry.example/apis/ccompat/v7 (Apicurio)."
        )

    def _error(self, what: str, error: SchemaRegistryError) -> TopologyError:
        status, refusal = error.http_status_code, concealed(str(error))
        if status == 401:
            self.close()  # a token may have been revoked: the next call asks for another
        text = f"the schema registry at {self.address} refuses {what}: {shortened(refusal)}. "
        if status in _TRANSIENT:
            return RegistryUnavailable(text + "Try again later.")
        if _is_foreign(error) and status not in (401, 403):  # what checks a password may stand before it
            kind = "JSON without an error_code" if error.error_code is None else "no JSON"
            return self._no_registry(what, f"HTTP {status} and {kind}")
        if re.search(r"read[- ]?only", refusal, re.IGNORECASE):
            return TopologyError(
                text + "Register the schemas with `bridge schemas register` where, or when, it takes writes."
            )
        match status:
            case 401 | 403:
                own = ", registry.scope" if self._settings.token_endpoint_url else ""
                return TopologyError(f"{text}Check registry.user, registry.password{own} and their rights.")
            case 404:
                return SchemaNotFound(
                    text + "Check registry.url: is it the registry that the topic was written with?"
                )
            case 409:
                return SchemaError(f"{text}It is not compatible with an earlier version there. {TO_UPGRADE}")
            case 422:
                return SchemaError(text + "Check that it speaks Confluent's API for Avro schemas.")
            case _:
                return TopologyError(text + "Check registry.url.")


def confirm_ids(settings: RegistrySettings, topic_prefix: str, codecs: Codecs) -> None:
    """Raise IdsChanged if this is not the registry any more that gave an owner's codecs their ids.

    A standby may have asked another one, hours ago. Raises like `Registry.register`.
    """
    with Registry(settings) as registry:  # without what an earlier one has answered
        ids = [*registry.register(topic_prefix, OF_OWNER).values()]
    if ids != (known := [codec.schema_id for codec in codecs]):
        raise IdsChanged(f"the schema registry at {registry.address} gives the ids {ids}, and gave {known}")


def _read(call: Callable[[], T], unreadable: Sequence[int] = _UNREADABLE) -> T | None:
    """Return what a call reads; None if it is not there, or not to be read."""
    try:
        return call()
    except SchemaRegistryError as error:
        status = error.http_status_code
        if status not in unreadable or (status == 404 and _is_foreign(error)):
            raise
        return None


def _is_compatible(schema: Schema, registered: RegistrySchema) -> bool:
    """Return whether a registry takes our schema beside one that is registered, by the rule of `register`."""
    try:
        return registered.schema_type == "AVRO" and not differences(
            schema, json.loads(registered.schema_str or "")
        )
    except (SchemaError, ValueError):  # such as a type that is registered elsewhere
        return False


def _is_foreign(error: SchemaRegistryError) -> bool:
    """Return whether no registry has given this answer: it gives each refusal a code; -1 is the client's."""
    return error.error_code in (None, -1)


def _given(value: T | None) -> T:
    """Return a field that each answer of a registry has. Raises ValueError without it."""
    if value is None:
        raise ValueError
    return value
