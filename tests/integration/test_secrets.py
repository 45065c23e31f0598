"""With every secret set and all logging enabled, neither the log nor anything that is left has a secret."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, quote_plus, urlsplit

import pytest

from bridge_sandbox.provider.faults import Drop, Refuse
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import Bridge, Place
from tests.integration.snapshots import simulated
from tests.processes import Process, start_python

FEED, REGISTRY, BROKER = "f33d/s3cret +ü", "r3gistry:s3cret", "br0ker s3cret"
KEY, STORE = "a-k3y-that-is-n0ne", "st0re-of-n0 keys"
ROOT = Path(__file__).parents[2]
NAME = "x-api-key"
"""Of the header or parameter that has the secret."""


def forms(secret: str, user: str) -> set[str]:
    """The forms in which a secret may appear."""
    basic = base64.b64encode(f"{user}:{secret}".encode()).decode()
    return {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1], basic}


def guarded(auth: str, secret: str) -> Simulator:
    """A provider that wants to see the secret."""
    settings = {"port": 0, "rate": 20, "auth": auth, "auth_name": NAME, "auth_value": secret}
    return Simulator(SimulatorSettings.model_validate(settings))


def talkative(place: Place, feed: Simulator, auth: str, **settings: str) -> Bridge:
    """A bridge of that provider that logs all it can."""
    common = {"FEED__BASE_URL": feed.url, "FEED__AUTH": auth, "FEED__AUTH_NAME": NAME}
    common |= {"KAFKA__DEBUG": "all", "KAFKA__SASL_USERNAME": "us3r"}
    return place.bridge("run", "-v", **common, **settings)


@pytest.mark.parametrize("auth", ["header", "query"])
async def test_no_secret_is_in_the_log_at_its_most_talkative(place: Place, tmp_path: Path, auth: str) -> None:
    secret = FEED if auth == "query" else FEED.replace("ü", "u")  # which no header can hold
    url = urlsplit(place.cluster.registry_url)
    registry = {"REGISTRY__USER": "us3r", "REGISTRY__PASSWORD": REGISTRY}
    if auth == "query":
        registry = {"REGISTRY__URL": url._replace(netloc=f"us3r:{quote(REGISTRY)}@{url.netloc}").geturl()}
    password = tmp_path / "password"
    password.write_text(BROKER)
    store = tmp_path / "store"
    store.write_text(STORE)
    async with guarded(auth, secret) as feed:
        bridge = talkative(
            place,
            feed,
            auth,
            FEED__AUTH_VALUE=secret,
            KAFKA__SASL_PASSWORD_FILE=str(password),
            KAFKA__SASL_OAUTHBEARER_CLIENT_SECRET=KEY,
            KAFKA__SSL_KEYSTORE_PASSWORD_FILE=str(store),
            **registry,
        )
        await bridge.reaches("Live")
        feed.inflict(Drop())
        await bridge.reaches("Live", 2)
        served = [(await bridge.get(path)).text for path in ("/", "/metrics", "/healthz", "/readyz")]
        assert await bridge.end() == 0
    said = "\n".join([bridge.text(), *served])
    libraries = {line["library"].partition(".")[0] for line in bridge.lines() if "library" in line}
    assert {"websockets", "librdkafka"} <= libraries
    for value in (secret, REGISTRY, BROKER, KEY, STORE):
        assert [form for form in forms(value, "us3r") if form in said] == []


async def test_a_killed_run_leaves_no_secret_behind(place: Place, tmp_path: Path) -> None:
    marker = "m4rker-of-all-secrets"
    file = tmp_path / "secret"
    file.write_text(marker)
    work = tmp_path / "work"
    work.mkdir()

    places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(work))

    def start(command: Sequence[str], given: Mapping[str, str], stdout: Path, stderr: Path) -> Process:
        environment = {**given, **places, "PYTHONPATH": str(ROOT)}
        return start_python(["-m", *command], environment, stdout, stderr, work)

    place.start = start
    async with guarded("bearer", marker) as feed:
        bridge = talkative(
            place,
            feed,
            "bearer",
            FEED__AUTH_VALUE_FILE=str(file),
            REGISTRY__USER="us3r",
            REGISTRY__PASSWORD=marker,
            API__TOKEN=marker,
            KAFKA__SASL_PASSWORD=marker,
            KAFKA__SSL_KEY_PASSWORD=marker,
        )
        await bridge.reaches("Live")
        feed.inflict(Refuse(seconds=60))
        feed.inflict(Drop())
        await bridge.reaches("BackingOff")
        bridge.kill()
    left = dict(left_in(place, FEED_TOPICS)) | {
        str(path): path.read_bytes() for path in files_in(tmp_path) - {file}
    }
    assert {"checkpoints", "bets", str(bridge.log)} <= {name.partition(" ")[0] for name in left}
    looked_for = [form.encode() for form in forms(marker, "us3r")]
    assert [name for name, content in left.items() if any(form in content for form in looked_for)] == []


async def test_a_job_leaves_no_secret_behind(place: Place, tmp_path: Path) -> None:
    marker = "m4rker-of-all-secrets"
    async with simulated(bets=8) as provider:
        token = provider.rest.tokens.mint(provider.clock())
        settings = {
            "API__BASE_URL": provider.url,
            "API__TOKEN": token,
            "REGISTRY__USER": "us3r",
            "REGISTRY__PASSWORD": marker,
            "KAFKA__SASL_PASSWORD": marker,
            "KAFKA__SSL_KEY_PASSWORD": marker,
        }
        for job in ("translations", "currencies"):
            metrics = tmp_path / f"{job}.prom"
            ran = place.bridge(job, "--json", "--metrics-file", str(metrics), **settings)
            assert await ran.wait() == 0, ran.text()
            assert metrics.read_text()
    left = dict(left_in(place, JOB_TOPICS)) | {str(path): path.read_bytes() for path in files_in(tmp_path)}
    assert {name.partition(" ")[0] for name in left} >= set(JOB_TOPICS)
    looked_for = [form.encode() for secret in (marker, token) for form in forms(secret, "us3r")]
    assert [name for name, content in left.items() if any(form in content for form in looked_for)] == []


FEED_TOPICS = ("checkpoints", "bets", "deadletters", "gaps")
JOB_TOPICS = ("translations", "currencies", "snapshots", "snapshot-state")


def files_in(directory: Path) -> set[Path]:
    return {path for path in directory.rglob("*") if path.is_file()}


def left_in(place: Place, topics: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The place and the content of each record of these topics."""
    for topic in topics:
        for record in place.read(topic, isolation="read_uncommitted"):
            parts = (record.key(), record.headers(), record.value())
            yield f"{topic} {record.partition()} {record.offset()}", repr(parts).encode()
