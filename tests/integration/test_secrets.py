"""With every secret set and all logging enabled, the log contains no secret."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import quote, quote_plus, urlsplit

import pytest

from bridge.sandbox.provider.faults import Drop
from bridge.sandbox.provider.server import Simulator
from bridge.sandbox.provider.settings import SimulatorSettings
from tests.harness import Place, until

FEED, REGISTRY, BROKER = "f33d/s3cret +ü", "r3gistry:s3cret", "br0ker s3cret"
KEY, STORE = "a-k3y-that-is-n0ne", "st0re-of-n0 keys"


def forms(secret: str, user: str) -> set[str]:
    """The forms in which a secret may appear."""
    basic = base64.b64encode(f"{user}:{secret}".encode()).decode()
    return {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1], basic}


@pytest.mark.parametrize("auth", ["bearer", "header", "query"])
async def test_no_secret_is_in_the_log_at_its_most_talkative(place: Place, tmp_path: Path, auth: str) -> None:
    """On every way to the provider, with the logs of librdkafka and all libraries."""
    secret = FEED if auth == "query" else FEED.replace("ü", "u")  # no header holds the other
    url = urlsplit(place.cluster.registry_url)
    registry = {"REGISTRY__USER": "us3r", "REGISTRY__PASSWORD": REGISTRY}
    if auth == "query":
        registry = {"REGISTRY__URL": url._replace(netloc=f"us3r:{quote(REGISTRY)}@{url.netloc}").geturl()}
    password = tmp_path / "password"
    password.write_text(BROKER)
    store = tmp_path / "store"
    store.write_text(STORE)
    settings = SimulatorSettings.model_validate(
        {"port": 0, "rate": 20, "auth": auth, "auth_name": "x-api-key", "auth_value": secret}
    )
    async with Simulator(settings) as feed:
        bridge = place.bridge(
            "run",
            "-v",
            FEED__BASE_URL=feed.url,
            FEED__AUTH=auth,
            FEED__AUTH_NAME="x-api-key",
            FEED__AUTH_VALUE=secret,
            KAFKA__DEBUG="all",
            KAFKA__SASL_USERNAME="us3r",
            KAFKA__SASL_PASSWORD_FILE=str(password),
            KAFKA__SASL_OAUTHBEARER_CLIENT_SECRET=KEY,
            KAFKA__SSL_KEYSTORE_PASSWORD_FILE=str(store),
            **registry,
        )
        await until(lambda: "Live" in bridge.states(), "live", so_far=bridge.text)
        feed.inflict(Drop())
        await until(lambda: bridge.states().count("Live") > 1, "live again", so_far=bridge.text)
        assert await bridge.end() == 0
    said = bridge.text()
    libraries = {line["library"].partition(".")[0] for line in bridge.lines() if "library" in line}
    assert {"websockets", "librdkafka"} <= libraries
    for value in (secret, REGISTRY, BROKER, KEY, STORE):
        assert [form for form in forms(value, "us3r") if form in said] == []
