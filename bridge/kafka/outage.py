"""Explains why no broker can be used, and which setting to check.

A client reports its errors only while it is polled, and a call that times out has no cause. What one client
of a cluster reports holds for all of them.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any

from confluent_kafka import KafkaError, KafkaException, ThrottleEvent
from confluent_kafka.admin import AdminClient

from bridge.config import KafkaSettings, env_name, tls
from bridge.kafka.pace import QUICK_SECONDS, KafkaPace
from bridge.log import get

POLL_SECONDS = 0.1
REPORT_SECONDS = 1.5
"""Time after which a pending request is reported."""
SLOW_AGAIN_SECONDS = 60.0
PROBE_SECONDS = 1.0

SERVERS = env_name("kafka", "bootstrap_servers")
NO_ANSWER = "no answer"
_UNVERIFIED = "certificate verify failed"
_ISSUER = "acquire SASL OAUTHBEARER token"
_REJECTED = r"alert ((\w+ )?certificate|handshake failure|unknown ca|decrypt error|access denied)"
_CAUSES = {
    _UNVERIFIED: ("the broker's certificate is refused", "ssl_ca_location"),
    _REJECTED: (
        "the listener requires another client certificate",
        "ssl_certificate_location, ssl_key_location",
    ),
    "in state SSL_HANDSHAKE": ("the listener does not speak TLS", "security_protocol"),
    "mechanism handshake": ("the listener does not offer the mechanism", "sasl_mechanism, security_protocol"),
    _ISSUER: ("the issuer gives no token", "sasl_oauthbearer_…"),
    "_AUTHENTICATION": ("the user or the password is wrong", "sasl_username, sasl_password(_file)"),
    "_SSL": ("TLS failed", "security_protocol, ssl_…"),
    "_RESOLVE": ("the host name is unknown", "bootstrap_servers"),
    "_BAD_MSG": ("the answer is not in Kafka's protocol", "bootstrap_servers, security_protocol"),
    "_TRANSPORT": ("no connection", "bootstrap_servers"),
    "_ALL_BROKERS_DOWN": ("the listener closes connections, as with another protocol", "security_protocol"),
}
"""A pattern in an error's code and text → the cause and the settings to check. The first match counts."""
_PASSING = {"", "_TRANSPORT", "_ALL_BROKERS_DOWN"}
"""Causes that are also ordinary outages: logged only while a request waits for its answer."""
_NO_TRUST = {_UNVERIFIED, _REJECTED, _ISSUER, "_AUTHENTICATION", "_SSL"}
"""Causes that other secrets or certificates may end."""
_NO_BROKER = {*_CAUSES, "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT", "_WAIT_COORD"}
"""Errors that mean an outage."""


def _kind(error: KafkaError) -> str:
    text = f"{error.name()} {error.str()}"
    return next((pattern for pattern in _CAUSES if re.search(pattern, text)), "")


def lacks_trust(error: KafkaError) -> bool:
    """Return whether broker and client do not trust each other."""
    return _kind(error) in _NO_TRUST


class Outage:
    """The known cause of an outage of Kafka. Clients report errors on any thread, the event loop's too."""

    def __init__(self) -> None:
        self.cause = ""
        self.no_token = ""
        """Why a client gets no token of ours, which its error does not say."""
        self._kind = ""
        self.properties: Mapping[str, Any] = {}
        """librdkafka's properties of the last client created, without secrets."""
        self._reported: set[str] = set()
        self._slow_at = -inf
        """When it was last reported that an answer takes long, monotonic seconds."""
        self._pace = KafkaPace()
        """What brokers say of quotas to clients that are not a transaction's."""
        self._verified: dict[str, str] = {}
        """A broker's error about its certificate → why TLS rejects it; until that is known, the error."""

    def on_error(self, error: KafkaError) -> None:
        """Note the cause from a client's error, without blocking. Logs it unless it may be transient."""
        kind = _kind(error)
        if kind in ("", self._kind) or (self._kind and kind == "_ALL_BROKERS_DOWN"):
            return
        # Without the milliseconds, so that each attempt has the same reason.
        detail = re.sub(r" \((after|\d+ identical).*", "", error.str())
        if kind == _ISSUER:
            detail = self.no_token or detail
        self._note(kind, self._verified.get(detail, detail))
        if kind == _UNVERIFIED and detail not in self._verified:
            self._verified[detail] = detail
            threading.Thread(target=self._probe, args=(detail,), name="kafka-probe", daemon=True).start()
        elif kind not in _PASSING:
            self.report()

    def on_throttle(self, event: ThrottleEvent) -> None:
        """Note that a broker answers nothing for so long, because of a quota. Logs it once in a while."""
        now = time.monotonic()
        self._pace.on_throttle(event.broker_id, event.throttle_time, now)
        if event.throttle_time > QUICK_SECONDS and self._is_due(now):
            get().warning("Kafka is slow", reason=self._pace.reason(now))

    @property
    def throttled(self) -> bool:
        """Whether a broker has said that it holds back its answers: what does not come is no outage."""
        return self._pace.throttled(time.monotonic())

    def over(self) -> None:
        """Forget the cause, because a broker has answered."""
        self.cause = self._kind = ""
        self._verified = {}
        self._reported.clear()

    def explain(self, reason: str | KafkaError, unknown: str = "") -> str:
        """Add the addresses tried and the cause, or `unknown` without one, to the reason of a failure.

        An error that does not mean an outage, such as a broker's answer, has nothing to do with the cause.
        """
        cause = self.cause or self._pace.reason(time.monotonic()) or unknown
        if isinstance(reason, KafkaError):
            cause = cause if reason.name() in _NO_BROKER else ""
            reason = reason.str()
        if not cause or SERVERS in reason:
            return reason
        return f"{reason}{self._tried(cause)}"

    def report(self) -> None:
        """Log the cause, once in an outage; that an answer takes long, on a long way, once in a while."""
        if self._kind not in self._reported and (self._kind or self._is_due(time.monotonic())):
            self._reported.add(self._kind)
            event = "Kafka cannot be used" if self._kind else "Kafka has not answered yet"
            get().warning(event, reason=f"no broker answers{self._tried(self.cause or NO_ANSWER)}")

    @contextmanager
    def watched(self, client: AdminClient) -> Iterator[None]:
        """Poll a client during a request. Reports a slow request."""
        answered = threading.Event()

        def listen() -> None:
            seconds = 0.0
            while not answered.wait(POLL_SECONDS):
                client.poll(0)
                seconds += POLL_SECONDS
                if seconds > REPORT_SECONDS:
                    self.report()

        listener = threading.Thread(target=listen, name="kafka-errors", daemon=True)
        listener.start()
        try:
            yield
        except KafkaException:
            client.poll(0)
            raise
        finally:
            answered.set()
            listener.join()

    def _is_due(self, now: float) -> bool:
        if is_due := now > self._slow_at + SLOW_AGAIN_SECONDS:
            self._slow_at = now
        return is_due

    def _tried(self, cause: str) -> str:
        return f". Tried {self.properties.get('bootstrap.servers')} ({SERVERS}): {cause}"

    def _note(self, kind: str, detail: str) -> None:
        words, settings = _CAUSES[kind]
        given = (str(self.properties.get(name, "")) for name in ("sasl.mechanism", "sasl.mechanisms"))
        if kind == "_AUTHENTICATION" and "OAUTHBEARER" in map(str.upper, given):
            words, settings = "the token is refused", "sasl_oauthbearer_…"
        self._kind, self.cause = kind, f"{words}; check kafka.{settings} ({detail})"

    def _probe(self, detail: str) -> None:
        """Refine and log the cause, unless the outage is over or has another cause by then. May block."""
        self._verified[detail] = found = self._verify(detail) or detail
        if self._kind == _UNVERIFIED:
            self._note(_UNVERIFIED, found)
            self.report()

    def _verify(self, detail: str) -> str:
        """Return why TLS rejects the certificate of the broker in `detail`; librdkafka does not report it."""
        address = re.search(r"://\[?([^/]+?)\]?:(\d+)/", detail)
        if address is None:
            return ""
        try:
            file, text = map(self.properties.get, ("ssl.ca.location", "ssl.ca.pem"))
            context = ssl.create_default_context(cafile=file, cadata=text)
            tls.lenient(context)
            with socket.create_connection((address[1], int(address[2])), PROBE_SECONDS) as plain:
                context.wrap_socket(plain, server_hostname=address[1]).close()
        except ssl.SSLCertVerificationError as error:
            return error.verify_message.rstrip(".")
        except (OSError, ValueError):
            pass
        return ""


class Admin(AdminClient):
    """An administration client that knows the outage of its cluster."""

    def __init__(self, properties: dict[str, Any], *, outage: Outage, **options: Any) -> None:
        self.outage = outage
        super().__init__(properties, **options)


def outage_of(known: KafkaSettings | AdminClient) -> Outage:
    """Return the outage of the cluster that the settings name, or that a client has."""
    if isinstance(known, KafkaSettings):
        return _OUTAGES.setdefault(known.bootstrap_servers, Outage())
    return known.outage if isinstance(known, Admin) else Outage()


_OUTAGES: dict[str | None, Outage] = {}
"""By the brokers' addresses, as they are written: clients of a cluster are made in many places."""
