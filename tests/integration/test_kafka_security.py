"""What a user reads when Kafka cannot be used: the addresses tried, the cause, and the settings to check.

One broker has a listener for each way to be wrong about TLS and SASL, and heeds access control lists.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from bridge.config import Settings
from bridge.records import topics
from bridge.records.rights import NEEDED
from bridge_sandbox import cluster
from bridge_sandbox.cluster.ports import HOST, free_port
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.brokers import broker_with
from tests.harness import Bridge, Place, assert_exact, simulate, until
from tests.integration.rights import (
    GROUP,
    ID,
    READ,
    SOON_SECONDS,
    TOPIC,
    WRITE,
    Right,
    add,
    assert_names,
    rule,
)
from tests.integration.snapshots import simulated
from tests.integration.test_dead_letters import letter
from tests.integration.test_gaps import four_days_ago
from tests.integration.test_secrets import forms
from tests.issuer import Issuer, serving
from tests.signing import LIFE_SECONDS, end_of
from tests.tls import Authority
from tests.unit.cli.test_commands import ALL

PASSWORD, WRONG = "hush-8c1f-hush", "psst-77e0-psst"
LISTENERS = {
    "sasl": "SASL_SSL",
    "expired": "SASL_SSL",
    "elsewhere": "SASL_SSL",
    "mutual": "SSL",
    "rotated": "SSL",
    "renewed": "SASL_SSL",
    "oauth": "SASL_SSL",
    "signed": "SASL_SSL",
}
COMMANDS = {
    "run": "checkpoints",
    "tail --from-beginning": "bets",
    "replay": "bets",
    "gaps": "gaps",
    "limits": "checkpoints",
    "checkpoint show": "checkpoints",
    "topics plan": "checkpoints",
    "topics apply": "checkpoints",
    "translations": "snapshots",
    "currencies": "snapshots",
    "audit": "bets",
    "explain a-bet": "bets",
    "deadletters list": "deadletters",
    "deadletters show a-key": "deadletters",
    "deadletters export": "deadletters",
    "deadletters redrive": "deadletters",
    "checkpoint set --revision 5m --yes": "checkpoints",
    "checkpoint reset --yes": "checkpoints",
    "checkpoint retire another --yes": "checkpoints",
}
"""Each command that talks to Kafka, and the first topic that it asks about."""

_numbers = itertools.count(1)

pytestmark = pytest.mark.xdist_group("security")
"""One broker is started for all of them."""


class Secured(NamedTuple):
    """A cluster, the ports of its listeners, and the file of the authority that it trusts."""

    cluster: cluster.Cluster
    ports: dict[str, int]
    authority: Path
    stranger: Authority
    """Which signs certificates that the brokers refuse."""
    client: tuple[Path, Path]
    """Certificate and key of a client that may do everything."""
    trusted: Path
    """The authorities of the clients of the listener `rotated`, which a broker reads when it starts."""
    renewed: Path
    """Key and certificate of the listener `renewed`, which a broker reads when it starts."""

    def settings(self, listener: str = "sasl", user: str = "known") -> dict[str, str]:
        """The settings of a client with access."""
        return {
            "KAFKA__BOOTSTRAP_SERVERS": f"{HOST}:{self.ports[listener]}",
            "KAFKA__SECURITY_PROTOCOL": LISTENERS[listener],
            "KAFKA__SASL_MECHANISM": "SCRAM-SHA-512",
            "KAFKA__SASL_USERNAME": user,
            "KAFKA__SASL_PASSWORD": PASSWORD,
            "KAFKA__SSL_CA_LOCATION": str(self.authority),
            "FEED__BASE_URL": "http://127.0.0.1:1",
            "API__BASE_URL": "http://127.0.0.1:1",
            "API__TOKEN": "t0ken-of-the-api",
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A cluster whose PLAINTEXT users may do everything."""
    directory, others = tmp_path_factory.mktemp("authority"), tmp_path_factory.mktemp("stranger")
    authority, stranger = Authority(directory), Authority(others)
    ports: dict[str, int] = {}
    trusted = directory / "trusted.pem"
    trusted.write_bytes(authority.certificate.read_bytes())
    renewed = directory / "renewed.pem"
    renewed.write_bytes(authority.server_file(HOST).read_bytes())
    certificates = {
        "renewed": renewed,
        "expired": authority.server_file(HOST, timedelta(minutes=-1)),
        "elsewhere": authority.server_file("127.0.0.2"),
    }

    def change(properties: str) -> str:
        for name in LISTENERS:  # others if one of these was taken meanwhile
            ports[name] = free_port([port for other, port in ports.items() if other != name])
        addresses = "".join(f",{name.upper()}://{HOST}:{port}" for name, port in ports.items())
        kinds = ",".join(f"{name.upper()}:{kind}" for name, kind in LISTENERS.items())
        lines = [
            re.sub(r"(?m)^((advertised\.)?listeners=.*)$", rf"\1{addresses}", properties),
            f"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{kinds}",
            "inter.broker.listener.name=PLAINTEXT",
            "sasl.enabled.mechanisms=SCRAM-SHA-512",
            # Without a validator of its own, Kafka takes tokens that nobody has signed.
            *(
                f"listener.name.{name}.{line}"
                for name in ("oauth", "signed")
                for line in (
                    "sasl.enabled.mechanisms=OAUTHBEARER",
                    "oauthbearer.sasl.jaas.config="
                    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                    'unsecuredLoginStringClaim_sub="broker";',
                )
            ),
            # A connection ends with its token.
            "listener.name.signed.connections.max.reauth.ms=3600000",
            "listener.name.mutual.ssl.client.auth=required",
            "listener.name.rotated.ssl.client.auth=required",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users=User:ANONYMOUS;User:CN=client;User:rotated;User:everything",
        ]
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        for name in LISTENERS:
            own = f"listener.name.{name}"
            lines += [
                f"{own}.ssl.keystore.type=PEM",
                f"{own}.ssl.keystore.location={certificates.get(name) or authority.server_file(HOST)}",
                f"{own}.ssl.truststore.type=PEM",
                f"{own}.ssl.truststore.location={trusted if name == 'rotated' else authority.certificate}",
                f"{own}.scram-sha-512.sasl.jaas.config={login}",
            ]
        return "\n".join([*lines, ""])

    with broker_with(tmp_path_factory.mktemp("secured"), change) as running:
        users = (
            "known",
            "nobody",
            "describer",
            "outsider",
            "least",
            "rotated",
            "everything",
            "reading",
            "feeding",
        )
        set_password(Place(running, "", directory), PASSWORD, *users)
        yield Secured(
            running,
            ports,
            authority.certificate,
            stranger,
            authority.client_files(),
            trusted,
            renewed,
        )


def set_password(place: Place, password: str, *users: str) -> None:
    """Give users a password, which brokers check as soon as they have learnt of it."""
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, how, password.encode()) for user in users
    ]
    client = place.admin()  # which must outlive its answers
    for changed in client.alter_user_scram_credentials(changes).values():
        changed.result(20)


@pytest.fixture
def place(secured: Secured, tmp_path: Path) -> Iterator[Place]:
    """Topics of this test on that cluster."""
    bridges: list[Bridge] = []
    yield Place(secured.cluster, f"s{next(_numbers)}", tmp_path, bridges, patience=SOON_SECONDS)
    for bridge in bridges:
        bridge.kill()


# No broker can be used.


def wrong(secured: Secured) -> dict[str, dict[str, str]]:
    """The mistake, and the settings that cause it."""
    right = secured.settings()
    plain = {"KAFKA__BOOTSTRAP_SERVERS": secured.cluster.bootstrap_servers}
    return {
        "address": {**right, "KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1"},
        "host": {**right, "KAFKA__BOOTSTRAP_SERVERS": "no-such-host.invalid:9092"},
        "password": {**right, "KAFKA__SASL_PASSWORD": WRONG},
        "user": {**right, "KAFKA__SASL_USERNAME": "unknown"},
        "mechanism": {**right, "KAFKA__SASL_MECHANISM": "PLAIN"},
        "authority": {**right, "KAFKA__SSL_CA_LOCATION": str(secured.stranger.certificate)},
        "expired": secured.settings("expired"),
        "elsewhere": secured.settings("elsewhere"),
        "TLS to plaintext": {**right, **plain},
        "plaintext to TLS": {**right, "KAFKA__SECURITY_PROTOCOL": "PLAINTEXT"},
        "client certificate": secured.settings("mutual"),
    }


CAUSES = {
    "address": "no connection; check kafka.bootstrap_servers (",
    "host": "the host name is unknown; check kafka.bootstrap_servers (",
    "password": "the user or the password is wrong; check kafka.sasl_username, sasl_password(_file) (",
    "user": "the user or the password is wrong; check kafka.sasl_username, sasl_password(_file) (",
    "mechanism": "the listener does not offer the mechanism; check kafka.sasl_mechanism, security_protocol (",
    "authority": "certificate is refused; check kafka.ssl_ca_location (unable to get local issuer",
    "expired": "certificate is refused; check kafka.ssl_ca_location (certificate has expired)",
    "elsewhere": "certificate is refused; check kafka.ssl_ca_location (IP address mismatch,",
    "TLS to plaintext": "the listener does not speak TLS; check kafka.security_protocol (",
    "plaintext to TLS": "closes connections, as with another protocol; check kafka.security_protocol (",
    "client certificate": "requires another client certificate; check kafka.ssl_certificate_location, ssl_k",
}


NO_CREDENTIALS = "AWS's signer: no AWS credentials are found; give this process a role"
NO_TOKEN = "the issuer gives no token; check kafka.sasl_oauthbearer_…"


@pytest.fixture(scope="module")
def said(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The stderr of `bridge gaps`, line by line, for each mistake."""
    place = Place(secured.cluster, "said", tmp_path_factory.mktemp("said"))
    causes = wrong(secured)
    with ThreadPoolExecutor(len(causes)) as some:  # each waits 5 s
        ran = some.map(lambda settings: place.run("gaps", **settings), causes.values())
        return {cause: result.stderr.splitlines() for cause, result in zip(causes, ran, strict=True)}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_command_says_why_kafka_cannot_be_used(
    secured: Secured, said: dict[str, list[str]], cause: str
) -> None:
    while_waiting, at_the_end = said[cause]
    servers = wrong(secured)[cause]["KAFKA__BOOTSTRAP_SERVERS"]
    assert '"Kafka cannot be used"' in while_waiting
    assert at_the_end.startswith("error: looking for said.gaps: no broker answered. Tried ")
    for line in (while_waiting, at_the_end):
        assert f"Tried {servers} (BRIDGE_KAFKA__BOOTSTRAP_SERVERS): " in line
        assert CAUSES[cause] in line
        assert PASSWORD not in line
        assert WRONG not in line
    assert "after" not in while_waiting  # the milliseconds would make a new reason of each attempt


async def test_every_command_says_it_before_it_gives_up(secured: Secured, place: Place) -> None:
    settings = wrong(secured)["password"]
    running = {command: place.bridge(*command.split(), **settings) for command in COMMANDS}
    gave_up: dict[str, bool] = {}
    """Whether a command had given up when its warning was seen."""

    def all_have_said_it() -> bool:
        for command, text in ((command, bridge.text()) for command, bridge in running.items()):
            if CAUSES["password"] in text:
                gave_up.setdefault(command, "\nerror: " in text)
        return len(gave_up) == len(running)

    await until(all_have_said_it, "the cause", so_far=lambda: f"said by {sorted(gave_up)}")
    assert gave_up == dict.fromkeys(COMMANDS, False)


def test_a_command_without_kafka_ends_soon(secured: Secured, place: Place) -> None:
    def run(command: str) -> tuple[int, bool, int]:
        began = time.monotonic()
        ran = place.run(*command.split(), **wrong(secured)["address"])
        return ran.returncode, time.monotonic() - began < 12, ran.stderr.count(CAUSES["address"])

    commands = "topics plan", "topics apply", "tail"
    with ThreadPoolExecutor(len(commands)) as some:
        ended = dict(zip(commands, some.map(run, commands), strict=True))
    assert ended == dict.fromkeys(commands, (1, True, 2))


async def test_the_state_has_the_cause_as_its_reason(secured: Secured, place: Place) -> None:
    bridge = place.bridge(**wrong(secured)["expired"])
    await bridge.reaches("WaitingForKafka")
    [line] = [line for line in bridge.lines() if line.get("state") == "WaitingForKafka"]
    assert line["reason"].startswith("no broker answers. Tried 127.0.0.1:")
    assert CAUSES["expired"] in line["reason"]


def test_the_doctor_finds_the_cause(secured: Secured, place: Place) -> None:
    found = place.run("doctor", **wrong(secured)["elsewhere"]).stdout
    assert re.search(rf"~ kafka .*{re.escape(CAUSES['elsewhere'])}", found)
    assert re.search(r"topics +needs kafka", found)


# A client has a certificate.


def identified(
    client: tuple[Path, Path], way: str, directory: Path, secret: str = PASSWORD
) -> dict[str, str]:
    """The settings that have a certificate and its key, whose secret is in a file."""
    certificate, key = client
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    locked = serialization.BestAvailableEncryption(secret.encode())
    (password := directory / "password").write_text(f"{secret}\n")
    match way:
        case "keystore":
            content = pkcs12.serialize_key_and_certificates(None, private, loaded, None, locked)
            (store := directory / "store.p12").write_bytes(content)
            return {"SSL_KEYSTORE_LOCATION": str(store), "SSL_KEYSTORE_PASSWORD_FILE": str(password)}
        case "key":
            form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
            (other := directory / "locked.key").write_bytes(private.private_bytes(*form, locked))
            return {
                "SSL_CERTIFICATE_LOCATION": str(certificate),
                "SSL_KEY_LOCATION": str(other),
                "SSL_KEY_PASSWORD_FILE": str(password),
            }
        case _:
            return {"SSL_CERTIFICATE_PEM": certificate.read_text(), "SSL_KEY_PEM_FILE": str(key)}


@pytest.mark.parametrize("way", ["keystore", "key", "pem"])
def test_a_client_certificate_has_its_secret_in_a_file(
    secured: Secured, place: Place, tmp_path: Path, way: str
) -> None:
    given = identified(secured.client, way, tmp_path)
    settings = secured.settings("mutual") | {f"KAFKA__{name}": value for name, value in given.items()}
    made = place.run("topics", "apply", **settings)
    assert made.returncode == 0, made.stderr


# A client has a token.


def by_token(secured: Secured, issuer: Issuer, secret: Path) -> dict[str, str]:
    """The settings of a client whose tokens come from that issuer."""
    return {
        "KAFKA__BOOTSTRAP_SERVERS": f"{HOST}:{secured.ports['oauth']}",
        "KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA__SSL_CA_LOCATION": str(secured.authority),
        "KAFKA__SASL_MECHANISM": "OAUTHBEARER",
        "KAFKA__SASL_OAUTHBEARER_METHOD": "oidc",
        "KAFKA__SASL_OAUTHBEARER_CLIENT_ID": "rotated",
        "KAFKA__SASL_OAUTHBEARER_CLIENT_SECRET_FILE": str(secret),
        "KAFKA__SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": issuer.address,
    }


def test_a_client_gets_its_token_from_an_issuer(
    secured: Secured, place: Place, rights: Place, tmp_path: Path
) -> None:
    (file := tmp_path / "secret").write_text(PASSWORD)
    with serving(PASSWORD) as issuer:
        settings = by_token(secured, issuer, file)
        made = place.run("topics", "apply", **settings)
        assert made.returncode == 0, made.stderr
        assert issuer.asked == [f"rotated:{PASSWORD}"]
        unable = rights.run("gaps", **settings | {"KAFKA__SASL_OAUTHBEARER_CLIENT_ID": "describer"})
        file.write_text(WRONG)
        refused = place.run("gaps", **settings)
    assert unable.returncode == 6
    assert "no right to Read the topic rights.gaps; grant it: " in unable.stderr
    assert refused.returncode == 1
    assert f"{NO_TOKEN} (Failed to" in refused.stderr
    assert PASSWORD not in refused.stderr
    assert WRONG not in refused.stderr


@pytest.mark.parametrize("way", ["password", "token"])
async def test_no_secret_is_in_the_log_of_a_client_that_gets_in(
    secured: Secured, place: Place, tmp_path: Path, way: str
) -> None:
    (file := tmp_path / "secret").write_text(PASSWORD)
    with serving(PASSWORD) as issuer:
        by_password = secured.settings("sasl", user="rotated")
        settings = by_password if way == "password" else by_token(secured, issuer, file)
        async with simulate() as feed:
            settings |= {"FEED__BASE_URL": feed.url, "KAFKA__DEBUG": "all"}
            bridge = place.bridge("run", "-v", **settings)
            await bridge.reaches("Live")
            assert await bridge.end() == 0
    said = bridge.text()
    assert '"library":"librdkafka' in said.replace(" ", "")
    assert bool(issuer.issued) == (way == "token")
    assert [form for form in (*forms(PASSWORD, "rotated"), *issuer.issued) if form in said] == []


def by_signer(secured: Secured) -> dict[str, str]:
    """The settings of a client whose tokens come from AWS's signer, or that of `tests.signing`."""
    return {
        "KAFKA__BOOTSTRAP_SERVERS": f"{HOST}:{secured.ports['signed']}",
        "KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA__SSL_CA_LOCATION": str(secured.authority),
        "KAFKA__SASL_MECHANISM": "OAUTHBEARER",
        "KAFKA__SASL_OAUTHBEARER_MSK_REGION": "eu-central-1",
    }


async def test_a_bridge_publishes_beyond_the_end_of_its_token(
    secured: Secured, place: Place, tmp_path: Path
) -> None:
    """Its tokens last 6 s, and so do its connections; without the signer it says why it waits."""
    signed, away = tmp_path / "signed", tmp_path / "away"

    def tokens() -> list[str]:
        return signed.read_text().splitlines()

    def last_end() -> float:
        return end_of(tokens()[-1])

    async with simulate() as feed:
        settings = by_signer(secured) | {"FEED__BASE_URL": feed.url}
        bridge = place.signing(tmp_path, "run", **settings)
        await bridge.reaches("Live")
        states, late = bridge.states(), last_end() + 2 * LIFE_SECONDS
        await until(lambda: last_end() > late, "tokens that follow others", so_far=bridge.text)
        assert bridge.states() == states

        away.touch()
        standby = place.signing(tmp_path, "run", **settings)
        await standby.reaches("WaitingForKafka")
        await until(lambda: NO_CREDENTIALS in bridge.text(), "why it gets no token", so_far=bridge.text)
        away.unlink()
        # The bridge may have lost the feed to it meanwhile.
        took_part = {"Standby", "Live"}
        await until(lambda: bool(took_part & {*standby.states()}), "a standby", so_far=standby.text)
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == await standby.end() == 0
    assert NO_CREDENTIALS in standby.text()
    for token in tokens():
        assert token not in bridge.text() + standby.text()


# A secret is rotated.


class Rotation(NamedTuple):
    """How a bridge gets in, why it no longer does, and what gives it the new secret."""

    settings: dict[str, str]
    cause: str
    renew: Callable[[], object]


def rotations(secured: Secured, issuer: Issuer, directory: Path) -> dict[str, Rotation]:
    """One for each kind of secret; those of `secured.stranger` are the new ones."""
    password, secret, authority = directory / "password", directory / "secret", directory / "authority.pem"
    for file in (password, secret):
        file.write_text(PASSWORD)
    authority.write_bytes(secured.authority.read_bytes())
    certificate, key = directory / "client.crt", directory / "client.key"

    def renew_pair() -> None:
        for file, content in zip((certificate, key), secured.stranger.client_files(), strict=True):
            file.write_bytes(content.read_bytes())

    for file, content in zip((certificate, key), secured.client, strict=True):
        file.write_bytes(content.read_bytes())
    (stored := directory / "stored").mkdir()

    def by_password(listener: str, file: Path) -> dict[str, str]:
        given = secured.settings(listener, user="rotated") | {"KAFKA__SASL_PASSWORD_FILE": str(file)}
        del given["KAFKA__SASL_PASSWORD"]
        return given

    by_certificate = {
        "KAFKA__BOOTSTRAP_SERVERS": f"{HOST}:{secured.ports['rotated']}",
        "KAFKA__SECURITY_PROTOCOL": "SSL",
        "KAFKA__SSL_CA_LOCATION": str(secured.authority),
    }
    files = {"KAFKA__SSL_CERTIFICATE_LOCATION": str(certificate), "KAFKA__SSL_KEY_LOCATION": str(key)}
    store = identified(secured.client, "keystore", stored)
    return {
        "password": Rotation(
            by_password("sasl", password), CAUSES["password"], lambda: password.write_text(WRONG)
        ),
        "certificate": Rotation(by_certificate | files, CAUSES["client certificate"], renew_pair),
        "keystore": Rotation(
            by_certificate | {f"KAFKA__{name}": value for name, value in store.items()},
            CAUSES["client certificate"],
            lambda: identified(secured.stranger.client_files(), "keystore", stored, WRONG),
        ),
        "authority": Rotation(
            secured.settings("renewed", user="everything") | {"KAFKA__SSL_CA_LOCATION": str(authority)},
            CAUSES["authority"],
            lambda: authority.write_bytes(secured.stranger.certificate.read_bytes()),
        ),
        "issuer": Rotation(by_token(secured, issuer, secret), NO_TOKEN, lambda: secret.write_text(WRONG)),
    }


@pytest.mark.long
async def test_a_secret_is_rotated_without_a_restart(secured: Secured, place: Place, tmp_path: Path) -> None:
    """Bridges go on when broker and issuer no longer take their old secrets, one with each kind of secret.

    A job and a reader do so too.

    Connections outlast their credentials: each bridge has its new ones to use when a broker restarts.
    """
    with serving(PASSWORD) as issuer:
        ways = rotations(secured, issuer, tmp_path)
        # Below the prefix of the place: so it is seen if the restart of the broker has hidden records (0036).
        places = {way: place.below(way) for way in ways}
        settings = SimulatorSettings(port=0, rate=10)
        async with AsyncExitStack() as stack:
            feeds = {way: await stack.enter_async_context(Simulator(settings)) for way in ways}
            bridges = {
                way: places[way].bridge(**ways[way].settings | {"FEED__BASE_URL": feeds[way].url})
                for way in ways
            }
            for bridge in bridges.values():
                await bridge.reaches("Live")
            provider = feeds["password"]
            token = provider.rest.tokens.mint(provider.clock())
            api = {"API__BASE_URL": provider.url, "API__TOKEN": token, "API__PROXY": "none"}
            job, tail = (
                places["password"].bridge(*command.split(), **ways["password"].settings | api)
                for command in ("currencies --every 1s", "tail")
            )
            done = '"snapshot published"'
            await until(lambda: done in job.text() and bool(tail.output()), "both run", so_far=job.text)

            await asyncio.to_thread(set_password, place, WRONG, "rotated")
            secured.trusted.write_bytes(secured.stranger.certificate.read_bytes())
            secured.renewed.write_bytes(secured.stranger.server_file(HOST).read_bytes())
            issuer.password = WRONG
            await asyncio.to_thread(secured.cluster.servers["kafka-1"].stop)
            await asyncio.to_thread(secured.cluster.restart, "kafka-1")
            for way, bridge in bridges.items():
                told = ways[way].cause
                await until(lambda b=bridge, t=told: t in b.text(), f"{way} refused", so_far=bridge.text)  # type: ignore[misc]
            for rotation in ways.values():
                rotation.renew()
            shown, published = len(tail.output()), job.text().count(done)

            for way, bridge in bridges.items():
                assert_exact(await places[way].settled(feeds[way], bridge))
                assert not feeds[way].breaches
                assert await bridge.end() == 0
            await until(lambda: len(tail.output()) > shown, "more bets are shown", so_far=tail.text)
            await until(lambda: job.text().count(done) > published, "a snapshot", so_far=job.text)
            assert await job.end() == 0
            await tail.end()
            for program in (*bridges.values(), job, tail):
                assert PASSWORD not in program.text()
                assert WRONG not in program.text()


# A right is missing.


@pytest.fixture(scope="module")
def rights(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Topics with a record each. `describer` may only describe them, `outsider` may not use the group."""
    directory = tmp_path_factory.mktemp("rights")
    place = Place(secured.cluster, "rights", directory, patience=SOON_SECONDS)
    made = place.run("topics", "apply")
    assert made.returncode == 0, made.stderr
    for topic in ("bets", "gaps", "checkpoints", "snapshots"):
        place.write(topic, b"whatever", b"key")
    grant(
        place,
        (ResourceType.TOPIC, "describer", AclOperation.DESCRIBE),
        (ResourceType.GROUP, "describer", AclOperation.READ),
        (ResourceType.TOPIC, "outsider", AclOperation.READ),
        (ResourceType.TOPIC, "outsider", AclOperation.WRITE),
        (ResourceType.TOPIC, "outsider", AclOperation.DESCRIBE_CONFIGS),
    )
    return place


def grant(place: Place, *granted: tuple[ResourceType, str, AclOperation], names: Sequence[str] = ()) -> None:
    """Allow each user its operation on what has these names behind the prefix of the place, else on all."""
    rules = [
        AclBinding(
            kind,
            f"{place.prefix}.{name}",
            ResourcePatternType.LITERAL if names else ResourcePatternType.PREFIXED,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for kind, user, operation in granted
        for name in names or [""]
    ]
    add(place, rules)


GRANTED = "; grant it: "


@pytest.mark.parametrize(
    ("user", "command", "right"),
    [
        *(("nobody", command, f"Describe the topic rights.{topic}") for command, topic in COMMANDS.items()),
        ("describer", "replay", "Read the topic rights.bets"),
        ("describer", "audit", "Read the topic rights.checkpoints"),
        ("outsider", "replay", "Describe the group rights.reader"),
        ("outsider", "audit", "Describe the group rights.reader"),
        ("describer", "run", "DescribeConfigs the topic rights.checkpoints"),
        ("describer", "topics plan", "DescribeConfigs the topic rights.checkpoints"),
        ("outsider", "run", "Read the group rights.settlement-v4.owner"),
        ("outsider", "currencies", "Read the group rights.currencies.owner"),
    ],
)
def test_a_missing_right_is_named(
    secured: Secured, rights: Place, user: str, command: str, right: str
) -> None:
    for _ in range(5):
        ran = rights.run(*command.split(), **secured.settings(user=user))
        if ran.returncode == 6 or user != "outsider":
            break  # the only record may come before the broker refuses the group, which needs it no more
    assert (ran.returncode, ran.stdout) == (6, ""), ran.stderr
    assert f". The principal has no right to {right}{GRANTED}" in ran.stderr.splitlines()[-1]
    assert "Kafka cannot be used" not in ran.stderr


def test_the_doctor_finds_a_missing_right_before_it_is_needed(
    secured: Secured, rights: Place, tmp_path: Path
) -> None:
    new = Place(secured.cluster, f"{rights.prefix}.new", tmp_path, patience=SOON_SECONDS)
    ran = new.run("doctor", "--startup", "--json", **secured.settings(user="outsider"))
    found = {finding["check"]: finding for finding in json.loads(ran.stdout)}
    assert (ran.returncode, found["topics"]["outcome"], found["rights"]["outcome"]) == (1, "fail", "fail")
    assert "no right to Create the topic rights.new.checkpoints" in found["topics"]["message"]
    assert "no right to Describe the group rights.new.settlement-v4.owner" in found["rights"]["message"]
    assert not [name for name in new.admin().list_topics(timeout=10).topics if name.startswith("rights.new")]
    assert found["certificates"]["outcome"] == "warn"  # made to last a day


RIGHTS_OF_READERS = {
    Right(READ, TOPIC, "bets"): ("replay --output {file}",),
    Right(READ, TOPIC, "deadletters"): (
        "deadletters list",
        "deadletters show {letter}",
        "deadletters export",
        "deadletters redrive --dry-run",
        "audit",
    ),
    Right(READ, TOPIC, "gaps"): ("replay --gap", "audit", "explain {bet}"),
    Right(READ, TOPIC, "checkpoints"): ("explain {bet}", "gaps --feed another"),
    Right(READ, TOPIC, "translations"): ("tail --names en",),
}
"""A right → the commands that end with exit 6 without it. They write nothing, so they run side by side."""
SET, RESET, RETIRE = (
    "checkpoint set --revision 5m --yes",
    "checkpoint reset --yes",
    "checkpoint retire settlement-v4 --yes",
)
REDRIVE = "deadletters redrive"
RIGHTS_OF_WRITERS = {
    Right(READ, TOPIC, "bets"): (6, [REDRIVE]),
    Right(READ, TOPIC, "deadletters"): (6, [REDRIVE]),
    Right(READ, TOPIC, "checkpoints"): (6, [REDRIVE, SET, RETIRE]),
    Right(READ, GROUP, "settlement-v4.owner"): (6, [REDRIVE, SET, RETIRE]),
    Right(WRITE, TOPIC, "bets"): (8, [REDRIVE]),
    Right(WRITE, TOPIC, "deadletters"): (8, [REDRIVE]),
    Right(WRITE, TOPIC, "gaps"): (8, ["checkpoint set --revision 1s --yes"]),
    Right(WRITE, TOPIC, "checkpoints"): (8, [SET, RESET, RETIRE]),
    Right(WRITE, ID, "settlement-v4"): (8, [REDRIVE, SET, RETIRE]),
}
"""A right → the exit code without it, and the commands. Only one at a time can own the feed."""


async def test_a_command_that_lacks_one_right(secured: Secured, place: Place) -> None:
    assert place.run("topics", "apply").returncode == 0
    _, start = four_days_ago()
    async with simulated() as provider:
        bridge = await place.live(provider, FEED__START=start, FEED__ON_GAP="continue")
        assert await bridge.end() == 0
        message = next(iter(provider.published())).body
    letter(place, re.sub(rb'"betId":"[^"]*"', b'"betId":"new"', message))
    words = words_of(place)
    place.write("translations", b"whatever", b"key")
    users = {right: f"lacks-{n}" for n, right in enumerate(RIGHTS_OF_READERS | RIGHTS_OF_WRITERS)}
    set_password(place, PASSWORD, *users.values())
    for right, user in users.items():
        grant(place, *((kind, user, one) for kind, operations in NEEDED.items() for one in operations))
        add(place, [rule(place, right, AclPermissionType.DENY, f"User:{user}")])

    def refused(right: Right, code: int, command: str) -> None:
        settings = secured.settings(user=users[right])
        if "retire" in command:
            settings |= {"FEED__NAME": "another"}
        ran = place.run(*command.format(**words).split(), **settings)
        assert ran.returncode == code, f"{command} without {right}\n{ran.stdout}{ran.stderr}"
        assert_names(ran.stderr, right.words(place.prefix))

    with ThreadPoolExecutor(3) as some:
        reading = [
            some.submit(refused, right, 6, command)
            for right, commands in RIGHTS_OF_READERS.items()
            for command in commands
        ]
        for right, (code, commands) in RIGHTS_OF_WRITERS.items():
            for command in commands:
                refused(right, code, command)
        for one in reading:
            one.result()


async def test_a_right_that_topics_need(secured: Secured, place: Place) -> None:
    grant(place, *((kind, "least", one) for kind, operations in NEEDED.items() for one in operations))

    def refused(command: str, right: str, **settings: str) -> None:
        ran = place.run(*command.split(), **secured.settings(user="least"), **settings)
        assert ran.returncode == 6, f"{command}\n{ran.stderr}"
        what, _, topic = right.rpartition(" ")
        assert_names(ran.stderr, f"{what} {place.prefix}.{topic}")

    for command in ("run", "topics apply", "currencies", "translations"):
        refused(command, f"Create the topic {COMMANDS[command]}")
    assert declared_of_feed(place)[0] not in place.admin().list_topics(timeout=10).topics
    assert place.run("topics", "apply").returncode == 0
    await until(lambda: place.run("topics", "plan").returncode == 0, "the broker knows them all")
    refused("topics apply", "AlterConfigs the topic bets", TOPICS__MIN_COMPACTION_LAG_DAYS="8")
    assert place.run("topics", "plan").returncode == 0


READ_ONLY = (
    "tail --until-end",
    "replay",
    "replay --output {file}",
    "explain {bet}",
    "gaps",
    "limits",
    "checkpoint show",
    "audit",
    "deadletters list",
    "deadletters show {letter}",
    "deadletters export",
)
EVERY_OTHER = (*READ_ONLY, "topics plan")
ALONE = (
    "deadletters redrive",
    "checkpoint set --revision 5m --yes",
    "checkpoint reset --yes",
    "topics apply",
    "replay --to-topic {copy}",
    "checkpoint retire settlement-v4 --yes",
)
"""Those that want no bridge beside them, or the right to nothing."""
APART = {"run", "translations", "currencies", "doctor"}
"""Those that a test below starts by themselves."""
WITHOUT_KAFKA = {
    "init",
    "demo",
    "simulate",
    "dev up",
    "dev down",
    "dev status",
    "schemas check",
    "schemas register",
}
"""Or with one of their own."""


def test_no_command_is_forgotten() -> None:
    def those(*given: str) -> set[str]:
        return {name for name in ALL for command in given if f"{command} ".startswith(f"{name} ")}

    assert those(*COMMANDS) == ALL.keys() - WITHOUT_KAFKA - {"doctor"}
    assert those(*EVERY_OTHER, *ALONE) == ALL.keys() - WITHOUT_KAFKA - APART
    writing = (those(*ALONE) | APART) - {"replay"}  # it only reads, but for one option
    assert those(*READ_ONLY) == ALL.keys() - WITHOUT_KAFKA - writing - {"topics plan"}


def words_of(place: Place) -> dict[str, str]:
    """What stands in commands for a bet, a dead letter, a file to write and a topic, which is made."""
    copy = place.make_topic("copy", 6)
    first = {topic: (place.read(topic)[0].key() or b"").decode() for topic in ("bets", "deadletters")}
    return {
        "bet": first["bets"],
        "letter": first["deadletters"],
        "file": str(place.directory / "bets.jsonl"),
        "copy": copy,
    }


async def test_the_declared_rights_suffice(secured: Secured, place: Place) -> None:
    assert place.run("topics", "apply").returncode == 0
    grant(place, *((kind, "least", one) for kind, operations in NEEDED.items() for one in operations))
    async with simulated(odd=0.3) as provider:
        settings = secured.settings(user="least") | {
            "FEED__BASE_URL": provider.url,
            "API__BASE_URL": provider.url,
            "API__TOKEN": provider.rest.tokens.mint(provider.clock()),
            "API__REQUESTS_PER_SECOND": "1000",
        }
        bridge = place.bridge(**settings)
        assert_exact(await place.settled(provider, bridge))
        words = words_of(place)
        for job, ran in [(job, place.bridge(job, **settings)) for job in ("translations", "currencies")]:
            assert await ran.wait(SOON_SECONDS) == 0, ran.text()
            assert place.read(job)
        doctor = place.bridge("doctor", "--json", **settings)
        running = [place.bridge(*command.format(**words).split(), **settings) for command in EVERY_OTHER]
        for reader in running:
            assert await reader.wait(SOON_SECONDS) == 0, reader.text()
        await doctor.wait(SOON_SECONDS)
        found = {one["check"]: one["outcome"] for one in json.loads(doctor.output())}
        # The brokers' bounds need a right on the cluster, which nothing else needs, the other one Create.
        assert {it for it, outcome in found.items() if outcome not in ("ok", "warn")} == {"bounds", "aborted"}
        assert found["aborted"] == "skipped"
        assert await bridge.end() == 0
        for command in ALONE:
            name = {"FEED__NAME": "its-successor"} if "retire" in command else {}
            arguments = command.format(**words).split()
            done = await place.ran(*arguments, **settings | name)
            assert done.returncode == 0, done.stderr


async def test_readers_need_no_more_than_to_read(secured: Secured, place: Place) -> None:
    for command in ("apply", "plan"):
        assert place.run("topics", command).returncode == 0
    grant(place, (ResourceType.TOPIC, "reading", AclOperation.READ))
    grant(place, (ResourceType.GROUP, "reading", AclOperation.DESCRIBE), names=["reader"])
    of_feed = [name.removeprefix(f"{place.prefix}.") for name in declared_of_feed(place)]
    of_topics = [(ResourceType.TOPIC, "feeding", one) for one in NEEDED[ResourceType.TOPIC]]
    grant(place, *of_topics, names=of_feed)
    grant(place, (ResourceType.TOPIC, "feeding", AclOperation.DESCRIBE), names=["translations"])
    grant(
        place,
        (ResourceType.GROUP, "feeding", AclOperation.READ),
        names=["settlement-v4.owner", "reader"],
    )
    grant(place, (ResourceType.TRANSACTIONAL_ID, "feeding", AclOperation.WRITE), names=["settlement-v4"])
    async with simulate(history_seconds=10, odd=0.3) as feed:
        settings = secured.settings(user="feeding") | {"FEED__BASE_URL": feed.url}
        bridge = place.bridge(**settings)
        both = ("bets", "deadletters")
        await until(lambda: all(map(place.read, both)), "a record in each", so_far=bridge.text)
        doctor = place.bridge("doctor", "--startup", "--json", **settings)
        reading, words = secured.settings(user="reading"), words_of(place)
        running = [place.bridge(*command.format(**words).split(), **reading) for command in READ_ONLY]
        for reader in running:
            assert await reader.wait(SOON_SECONDS) == 0, reader.text()
        code = await doctor.wait(SOON_SECONDS)
        found = {one["check"]: one["outcome"] for one in json.loads(doctor.output())}
        assert (code, found["topics"], found["rights"]) == (0, "trouble", "trouble"), found
        assert await bridge.end() == 0


def declared_of_feed(place: Place) -> list[str]:
    """The names of the topics that a bridge uses."""
    settings = Settings.model_validate({"topics": {"prefix": place.prefix}})
    return [topic.name for topic in topics.declare(settings).of_feed()]
