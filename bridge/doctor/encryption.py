"""The check of what protects the credentials on their way: TLS, and certificates that are verified."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from bridge.config import Settings
from bridge.doctor.addresses import brokers, servers
from bridge.doctor.finding import Finding, Verdict

_FALSE = ("false", "f", "0")
"""As librdkafka reads it."""
_READABLE = ("PLAIN", "OAUTHBEARER")
"""SASL mechanisms that send the password or the token itself."""


def check_encryption(settings: Settings) -> Finding:
    """Whether credentials are sent over TLS, unless to this machine, and certificates are verified."""
    if exposed := dict.fromkeys([*_unencrypted(settings), *_of_kafka(settings)]):
        advice = (
            "Use TLS with verified certificates: without it, anyone on the network path can read or change "
            "what is sent."
        )
        return Finding(Verdict.WARN, "\n".join(exposed), advice)
    return Finding(Verdict.OK, "no credential is sent unencrypted, and certificates are verified")


def _unencrypted(settings: Settings) -> Iterator[str]:
    feed, registry, api = settings.feed, settings.registry, settings.api
    for setting, address, with_credential in (
        ("feed.base_url", feed.base_url, feed.auth != "none" or _has_password(feed.base_url)),
        ("registry.url", registry.url, bool(registry.secrets()) or _has_password(registry.url)),
        ("registry.token_endpoint_url", registry.token_endpoint_url, True),
        ("api.base_url", api.base_url, api.token is not None or api.token_file is not None),
    ):
        scheme, _, _ = (address or "").partition("://")
        host = urlsplit(address or "").hostname
        if host and with_credential and scheme in ("http", "ws") and not _is_local(host):
            yield f"{setting} begins with {scheme}://: the credential is sent to {host} unencrypted"
    for setting, _, proxy in servers(settings):
        found = urlsplit(proxy or "").hostname
        if proxy and found and _has_password(proxy) and proxy[:5] != "https" and not _is_local(found):
            own = setting.partition(".")[0] + ".proxy"
            where = own if proxy in (feed.proxy, api.proxy) else "HTTPS_PROXY (or a similar variable)"
            yield f"{where} is not https://: the password of the proxy is sent to {found} unencrypted"


def _has_password(address: str | None) -> bool:
    return bool(urlsplit(address or "").password)


def _of_kafka(settings: Settings) -> Iterator[str]:
    given = {name: str(value) for name, value in settings.kafka.public_properties().items()}
    if given.get("enable.ssl.certificate.verification", "").lower() in _FALSE:
        yield "kafka.enable_ssl_certificate_verification is false: anyone can impersonate a broker"
    if given.get("ssl.endpoint.identification.algorithm", "").lower() == "none":
        yield (
            "kafka.ssl_endpoint_identification_algorithm is none: anyone with a certificate of the authority "
            "can impersonate a broker"
        )
    issuer = urlsplit(given.get("sasl.oauthbearer.token.endpoint.url", ""))
    if issuer.scheme == "http" and issuer.hostname and not _is_local(issuer.hostname):
        yield (
            "kafka.sasl_oauthbearer_token_endpoint_url begins with http://: the client's secret is sent to "
            f"{issuer.hostname} unencrypted"
        )
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", "")).upper()
    hosts = [broker.host for broker in brokers(settings)]
    is_local = bool(hosts) and all(map(_is_local, hosts))
    if (
        given.get("security.protocol", "").lower() == "sasl_plaintext"
        and mechanism in _READABLE
        and not is_local
    ):
        yield (
            f"kafka.security_protocol is sasl_plaintext: {mechanism} sends the credential to the brokers "
            "unencrypted"
        )


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
