"""The dates of certificates: of servers, and of our own and the authorities' in the settings.

Whether a server's chain is trusted is for the checks that connect as the bridge does. These connections trust
every certificate, so that the dates of one that has expired are known, and send nothing.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from bridge.config import Settings
from bridge.config.files import read_bytes
from bridge.doctor.addresses import HostAddress, addresses
from bridge.doctor.finding import Finding, Verdict
from bridge.errors import SettingsError
from bridge.formatting import format_duration, format_utc, plain_error, plural
from bridge.kafka.blocking import in_background

SOON_SECONDS: Final = 14 * 86_400.0
"""A certificate that ends within this time is worth a warning."""
CONNECT_SECONDS: Final = 5.0
_OF_AUTHORITIES: Final = ("ca_file", "ca_location")
"""How the names of settings end that may name a directory."""


class Validity(NamedTuple):
    """From when to when a certificate is valid, Unix seconds."""

    begins: float
    ends: float


def check_certificates(settings: Settings, now: float) -> Finding:
    """Whether the certificates are valid at `now`, Unix seconds, and for two weeks more."""
    found, unread = dict[str, Validity](), dict[str, str]()
    reads = _own(settings)
    reads |= {str(address): partial(of_server, address) for address in addresses(settings) if address.is_tls}
    futures = {name: in_background("certificate", read) for name, read in reads.items()}
    for name, future in futures.items():
        try:
            found[name] = future.result()
        except (OSError, ValueError, SettingsError) as error:
            # OpenSSL looks certificates of authorities up in a directory.
            if not (isinstance(error, IsADirectoryError) and name.endswith(_OF_AUTHORITIES)):
                unread[name] = plain_error(error)
    return assess_certificates(found, unread, now)


def assess_certificates(found: Mapping[str, Validity], unread: Mapping[str, str], now: float) -> Finding:
    """Whether certificates are valid at `now`; `unread` are those that could not be read, with the reason."""
    invalid = [line for name, validity in found.items() if (line := _invalid(name, validity, now))]
    soon = [
        f"{name}: ends in {format_duration(validity.ends - now)}, at {format_utc(validity.ends)}"
        for name, validity in found.items()
        if now < validity.ends <= now + SOON_SECONDS
    ]
    lines = [*invalid, *soon, *(f"{name}: could not be read: {reason}" for name, reason in unread.items())]
    if lines:
        advice = "Renew it where it is issued; no restart is needed."
        worst = Verdict.TROUBLE if invalid else Verdict.WARN
        return Finding(worst, "\n".join(lines), advice if invalid or soon else "")
    if not found:
        return Finding(Verdict.OK, "no address uses TLS, or only through a proxy")
    name, first = min(found.items(), key=lambda item: item[1].ends)
    count = plural(len(found), "certificate")
    return Finding(Verdict.OK, f"{count}; the first to end: {name}, at {format_utc(first.ends)}")


def _invalid(name: str, validity: Validity, now: float) -> str:
    if validity.ends <= now:
        return f"{name}: expired at {format_utc(validity.ends)}"
    if validity.begins > now:
        return f"{name}: not valid before {format_utc(validity.begins)}"
    return ""


def of_authorities(pem: bytes) -> Validity:
    """Return the validity of the certificate that ends last: most files of authorities hold many."""
    return max(map(_validity, x509.load_pem_x509_certificates(pem)), key=lambda it: it.ends)


def of_client(pem: bytes) -> Validity:
    """Return the validity of the first certificate; those that signed it may follow."""
    return _validity(x509.load_pem_x509_certificates(pem)[0])


def of_key_store(content: bytes, password: bytes | None) -> Validity:
    """Return the validity of a client's certificate in a PKCS#12 store. Raises ValueError without one."""
    entry = pkcs12.load_pkcs12(content, password).cert
    if entry is None:
        raise ValueError("it holds no certificate with its key")
    return _validity(entry.certificate)


def of_server(address: HostAddress) -> Validity:
    """Return the validity of a server's own certificate. Raises OSError if it shows none."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((address.host, address.port), CONNECT_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname=address.host) as secured,
    ):
        shown = secured.getpeercert(binary_form=True)
    assert shown is not None  # a server of TLS always shows one
    return _validity(x509.load_der_x509_certificate(shown))


def _own(settings: Settings) -> dict[str, Callable[[], Validity]]:
    """Return by setting how to read the certificates that the settings name or hold."""
    found = dict[str, Callable[[], Validity]]()
    for section in ("feed", "registry", "api"):
        for name, of_file in (("ca_file", of_authorities), ("client_certificate_file", of_client)):
            if file := getattr(getattr(settings, section), name):
                found[f"{section}.{name}"] = partial(_in_file, of_file, file)
    of_kafka: dict[str, Callable[[bytes], Validity]] = {
        "ssl.ca": of_authorities,
        "https.ca": of_authorities,
        "ssl.certificate": of_client,
        "ssl.keystore": partial(_unlocked, settings),
    }
    for name, value in settings.kafka.public_properties().items():
        purpose, _, form = name.rpartition(".")
        # `probe` has librdkafka look for a location.
        if purpose in of_kafka and form in ("location", "pem") and value not in ("", "probe"):
            read, text = of_kafka[purpose], str(value)
            how = partial(_in_file, read, Path(text)) if form == "location" else partial(read, text.encode())
            found[f"kafka.{name.replace('.', '_')}"] = how
    return found


def _in_file(read: Callable[[bytes], Validity], file: Path) -> Validity:
    return read(read_bytes(file))


def _unlocked(settings: Settings, store: bytes) -> Validity:
    secrets = (it for it in settings.kafka.secrets() if it.setting == "kafka.ssl_keystore_password")
    password = next((secret.read() for secret in secrets), None)
    return of_key_store(store, None if password is None else password.encode())


def _validity(certificate: x509.Certificate) -> Validity:
    return Validity(certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp())
