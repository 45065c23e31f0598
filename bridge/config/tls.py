"""TLS contexts, even while the file of a certificate is missing for a moment."""

from __future__ import annotations

import ssl
from pathlib import Path

from bridge.config.fields import TlsSection
from bridge.config.files import hazard, last_good
from bridge.config.names import env_name
from bridge.errors import SettingsError
from bridge.formatting import plain_error


def context(section: str, settings: TlsSection) -> ssl.SSLContext:
    """Return a context with the certificates of `settings`, which are those of `section`.

    While a file cannot be used, its last content counts. Raises SettingsError if it could never be used.
    """
    files = settings.ca_file, settings.client_certificate_file, settings.client_key_file
    event = "certificate file unusable, using the last certificates"
    return last_good(files, lambda: _read(section, settings), event)


def lenient(context: ssl.SSLContext) -> None:
    """Have a context accept what each Python before 3.13 does, and Kafka's client.

    From 3.13 on, it refuses a company's own authority whose certificate lacks a key identifier.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT


def _read(section: str, settings: TlsSection) -> ssl.SSLContext:
    ca_file, certificate = settings.ca_file, settings.client_certificate_file
    for name in ("ca_file", "client_certificate_file", "client_key_file"):
        file = getattr(settings, name)
        if file is not None and (reason := hazard(file)):
            raise _unusable(section, name, f"{file}: {reason}")
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # an error of OpenSSL is one, too
        raise _unusable(section, "ca_file", f"{ca_file} as certificates: {plain_error(error)}") from None
    lenient(context)
    if certificate is not None:
        key = settings.client_key_file or certificate
        if reason := _problem(context, certificate, key):
            pair = f"{certificate} with the private key in {key}: {reason}"
            raise _unusable(section, "client_certificate_file", pair)
    return context


def _problem(context: ssl.SSLContext, certificate: Path, key: Path) -> str:
    """Have the context identify itself by a certificate; return why it cannot, "" if it can."""
    try:
        is_encrypted = b"ENCRYPTED" in key.read_bytes()
        certificate.read_bytes()  # the error of `load_cert_chain` does not say which file is missing
        # With a password, or OpenSSL asks the terminal for the one of an encrypted key.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return "the key belongs to another certificate"
        return (
            "the key must not have a password"
            if is_encrypted
            else "a certificate and its key are needed, both PEM"
        )
    except OSError as error:
        return plain_error(error)
    return ""


def _unusable(section: str, name: str, what: str) -> SettingsError:
    return SettingsError(f"{section}.{name} ({env_name(section, name)}): cannot use {what}")
