"""A certificate authority for a test, and certificates signed by it."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


def demand_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each Python make contexts as those from 3.13 on do."""
    create = ssl.create_default_context

    def strict(*args: Any, **kwargs: Any) -> ssl.SSLContext:
        made = create(*args, **kwargs)
        made.verify_flags |= ssl.VERIFY_X509_STRICT
        return made

    monkeypatch.setattr(ssl, "create_default_context", strict)


class Authority:
    """Signs certificates; its own is in the file `certificate`. Not all authorities identify their keys."""

    def __init__(self, directory: Path, *, identifies_keys: bool = True) -> None:
        self._directory, self._identifies_keys = directory, identifies_keys
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
        own = self._builder(self._name, self._key.public_key())
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        own = own.add_extension(usage, critical=True)
        self.certificate = directory / "authority.pem"
        self.certificate.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def server_context(self, address: str, *, asks: bool = False) -> ssl.SSLContext:
        """What a server at this IP address needs to use TLS; `asks` for the certificates of its clients."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server_file(address))
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.certificate)
        return context

    def client_files(self, name: str = "client") -> tuple[Path, Path]:
        """Certificate and key of a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signed = self._builder(subject, key.public_key()).sign(self._key, hashes.SHA256())
        files = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        files[0].write_bytes(signed.public_bytes(Encoding.PEM))
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return files

    def server_file(self, address: str, ends: timedelta = timedelta(days=1)) -> Path:
        """Key and certificate of a server at this IP address; the certificate `ends` from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        builder = self._builder(name, key.public_key(), ends).add_extension(names, critical=False)
        file = self._directory / f"{address}{ends.days}.pem"
        file.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        )
        return file

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, ends: timedelta = timedelta(days=1)
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + ends)
        )
        if not self._identifies_keys:
            return builder
        own = x509.SubjectKeyIdentifier.from_public_key(key)
        return builder.add_extension(own, critical=False).add_extension(issuer, critical=False)
