"""Say why no broker can be used, in plain words and with the setting to look at.

A client reports its errors only while it is polled, and a call that times out names no cause. A process uses
one cluster, so a cause is the process's, whichever of its clients has reported it.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from bridge.config import env_name
from bridge.log import get

POLL_SECONDS = 0.1
CAUSE_SECONDS = 1.0
SILENCE_SECONDS = 2.0
"""A question that is open for longer is reported; for longer than CAUSE_SECONDS if a cause is known."""
PROBE_SECONDS = 1.0

SERVERS = env_name("kafka", "bootstrap_servers")
CERTIFICATE = (
    "the broker's certificate is refused; look at kafka.ssl_ca_location, at its dates and at the names in it"
)
NO_ANSWER = "no answer"
UNREACHABLE = "no connection; look at kafka.bootstrap_servers and whether the brokers run"
CLOSED = (
    "the broker closes the connection without a reason, as a listener for another protocol does; look at "
    "kafka.security_protocol"
)
_CAUSES = (
    (r"certificate verify failed", CERTIFICATE),
    (
        r"alert (certificate|bad certificate|handshake failure|unknown ca)",
        "the listener requires another client certificate; look at kafka.ssl_certificate_location and "
        "kafka.ssl_key_location",
    ),
    (r"in state SSL_HANDSHAKE", "the listener does not speak TLS; look at kafka.security_protocol"),
    (
        r"mechanism handshake failed",
        "the listener does not offer this SASL mechanism; look at kafka.sasl_mechanism and "
        "kafka.security_protocol",
    ),
    (
        r"_AUTHENTICATION",
        "the user or the password is wrong; look at kafka.sasl_username and kafka.sasl_password or "
        "kafka.sasl_password_file",
    ),
    (r"_SSL", "TLS failed; look at kafka.security_protocol and the kafka.ssl_… properties"),
    (r"_RESOLVE", "the name of the host cannot be resolved; look at kafka.bootstrap_servers"),
    (
        r"_BAD_MSG",
        "the answer is not Kafka's; look at kafka.bootstrap_servers and kafka.security_protocol",
    ),
    (r"_TRANSPORT", UNREACHABLE),
    (r"_ALL_BROKERS_DOWN", CLOSED),
)
"""What to find in the code and text of an error, and the cause it stands for. The first match counts."""


class Outage:
    """The cause of an outage of Kafka, as far as it is known. Clients report errors on any thread."""

    def __init__(self) -> None:
        self.cause = self._detail = ""
        self._servers = ""
        self._authorities: dict[str, Any] = {}
        self._reported: set[str] = set()

    def configure(self, properties: Mapping[str, Any]) -> None:
        """Set the librdkafka properties that say which cluster the clients use."""
        self._servers = properties["bootstrap.servers"]
        self._authorities = {
            "cafile": properties.get("ssl.ca.location"),
            "cadata": properties.get("ssl.ca.pem"),
        }

    def hear(self, error: KafkaError) -> None:
        """Take the error that a client reports. Logs a cause at once unless it may pass by itself."""
        text = f"{error.name()} {error.str()}"
        cause = next((words for pattern, words in _CAUSES if re.search(pattern, text)), "")
        if cause in ("", self.cause) or (cause is CLOSED and self.cause):
            return
        # Without the milliseconds, or each attempt would be another reason.
        detail = re.sub(r" \((after|\d+ identical).*", "", error.str())
        if cause is CERTIFICATE:
            detail = self._verify(detail) or detail
        self.cause, self._detail = cause, "" if cause is CLOSED else f" ({detail})"
        if cause not in (UNREACHABLE, CLOSED):
            self.report()

    def over(self) -> None:
        """Forget the cause, because a broker has answered."""
        self.cause = self._detail = ""

    def explain(self, reason: str, unknown: str = "") -> str:
        """Add to the reason of a failure where Kafka was tried and the cause; `unknown` stands for none."""
        cause = self.cause or unknown
        if not cause or SERVERS in reason:
            return reason
        return f"{reason}. Tried {self._servers} ({SERVERS}): {cause}{self._detail}"

    def report(self) -> None:
        """Log the cause, the first time only."""
        if self.cause not in self._reported:
            self._reported.add(self.cause)
            get().warning("Kafka cannot be used", reason=self.explain("no broker answers", NO_ANSWER))

    @contextmanager
    def watched(self, client: AdminClient) -> Iterator[None]:
        """Poll a client while a question to it is open. Reports an answer that takes long."""
        answered = threading.Event()

        def listen() -> None:
            seconds = 0.0
            while not answered.wait(POLL_SECONDS):
                client.poll(0)
                seconds += POLL_SECONDS
                if seconds > (CAUSE_SECONDS if self.cause else SILENCE_SECONDS):
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

    def _verify(self, detail: str) -> str:
        """Return why TLS refuses the certificate of the broker in `detail`. librdkafka does not tell."""
        address = re.search(r"://\[?([^/]+?)\]?:(\d+)/", detail)
        if address is None:
            return ""
        try:
            context = ssl.create_default_context(**self._authorities)
            with socket.create_connection((address[1], int(address[2])), PROBE_SECONDS) as plain:
                context.wrap_socket(plain, server_hostname=address[1]).close()
        except ssl.SSLCertVerificationError as error:
            return error.verify_message.rstrip(".")
        except (OSError, ValueError):
            pass
        return ""


outage = Outage()
"""Of the one cluster that this process uses."""
