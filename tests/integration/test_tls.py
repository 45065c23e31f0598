"""Provider, REST side and registry want TLS, and certificates or tokens, which are renewed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.encrypted import Front, fronts
from tests.harness import Place, assert_exact, simulate, until
from tests.integration.snapshots import LANGUAGES, SMALL
from tests.issuer import serving
from tests.tls import Authority


class Keys:
    """What clients have: the authority that they trust, a certificate, its key and a password."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.authority, self.certificate, self.key, self.password = (
            directory / name for name in ("authority.pem", "client.crt", "client.key", "password")
        )

    def replace(self, authority: Authority, password: str) -> None:
        """Renew all of them."""
        self.authority.write_bytes(authority.certificate.read_bytes())
        for file, new in zip((self.certificate, self.key), authority.client_files(), strict=True):
            file.write_bytes(new.read_bytes())
        self.password.write_text(password)

    def of(self, section: str) -> dict[str, str]:
        """The settings of a section."""
        return {
            f"{section}__CA_FILE": str(self.authority),
            f"{section}__CLIENT_CERTIFICATE_FILE": str(self.certificate),
            f"{section}__CLIENT_KEY_FILE": str(self.key),
        }


async def test_certificates_and_passwords_of_all_servers_are_rotated(place: Place, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    settings = SimulatorSettings(
        port=0, rate=20, limits_scale=1000, sizes=SMALL, api=RestPolicy(languages=LANGUAGES, rate=1000)
    )
    async with Simulator(settings) as feed:
        provider = Front(urlsplit(feed.url).port or 0)
        registry = Front(urlsplit(place.cluster.registry_url).port or 0)

        def renew(name: str) -> Authority:
            (directory := tmp_path / name).mkdir()
            authority = Authority(directory)
            for front in (provider, registry):
                front.context = authority.server_context("127.0.0.1", asks=True)
            basic = base64.b64encode(f"bridge:{name}".encode())
            registry.required = b"Basic " + basic
            return authority

        keys.replace(renew("first"), "first")
        async with fronts(provider, registry) as servers:
            given = {
                "FEED__BASE_URL": f"wss://127.0.0.1:{provider.port}",
                "API__BASE_URL": f"https://127.0.0.1:{provider.port}",
                "API__TOKEN": feed.rest.tokens.mint(feed.clock()),
                "API__ATTEMPTS": "1",
                "REGISTRY__URL": f"https://127.0.0.1:{registry.port}{urlsplit(place.cluster.registry_url).path}",
                "REGISTRY__USER": "bridge",
                "REGISTRY__PASSWORD_FILE": str(keys.password),
                "LIMITS__SCALE": "1000",
                "FEED__START": "2m",
                **{k: v for section in ("FEED", "API", "REGISTRY") for k, v in keys.of(section).items()},
            }
            bridge, job = place.bridge(**given), place.bridge("currencies", "--every", "1s", **given)
            await bridge.reaches("Live")
            published = '"snapshot published"'
            await until(lambda: published in job.text(), "the first snapshot", so_far=job.text)
            doctor = await place.ran("doctor", "--startup", "--json", **given)
            found = {one["check"]: one["outcome"] for one in json.loads(doctor.stdout)}
            assert doctor.returncode == 0, doctor.stdout
            assert (found["certificates"], found["registry"], found["rest"]) == ("warn", "ok", "ok")

            second = renew("second")
            async with fronts(provider, registry):  # before the others end: the ports stay taken
                for server in servers:
                    server.close()
                for front in (provider, registry):
                    front.drop()
                refused = "certificate verify failed"
                await until(lambda: refused in bridge.text(), "refused", so_far=bridge.text)
                before = job.text().count(published)
                keys.replace(second, "second")
                await until(lambda: bridge.states()[-1] == "Live", "live again", so_far=bridge.text)
                await until(lambda: job.text().count(published) > before, "a snapshot", so_far=job.text)
                assert_exact(await place.settled(feed, bridge))
                assert not feed.breaches
                for one in (bridge, job):
                    assert await one.end() == 0, one.text()


async def test_a_registry_wants_tokens_of_an_issuer(place: Place, tmp_path: Path) -> None:
    """It takes the last one alone, so each command gets its own; an issuer that is away is waited for."""
    secret, authority, issued = "hush-of-the-client", Authority(tmp_path), list[str]()
    (file := tmp_path / "secret").write_text(secret)
    address = urlsplit(place.cluster.registry_url)
    registry = Front(address.port or 0)
    registry.context = authority.server_context("127.0.0.1")

    def answer(user: str) -> tuple[int, Any]:
        issued.append(f"token-{len(issued)}-of-{user}")
        registry.required = f"Bearer {issued[-1]}\r\n".encode()
        return 200, {"access_token": issued[-1], "expires_in": 3600}

    async with fronts(registry), simulate() as feed:
        with serving(secret, authority.server_context("127.0.0.1")) as issuer:
            issuer.answer = answer
            given = {
                "FEED__BASE_URL": feed.url,
                "REGISTRY__URL": f"https://127.0.0.1:{registry.port}{address.path}",
                "REGISTRY__USER": "bridge",
                "REGISTRY__PASSWORD_FILE": str(file),
                "REGISTRY__TOKEN_ENDPOINT_URL": issuer.address,
                "REGISTRY__CA_FILE": str(authority.certificate),
            }
            made = await place.ran("schemas", "register", **given)
            assert made.returncode == 0, made.stderr
            doctor = await place.ran("doctor", "--startup", "--json", **given)
            found = {one["check"]: one["outcome"] for one in json.loads(doctor.stdout)}
            assert (doctor.returncode, found["registry"], found["encryption"]) == (0, "ok", "ok")
            issuer.answer = lambda user: (200, {"access_token": "of-another-registry"})
            foreign = await place.ran("schemas", "register", **given)
            file.write_text("of-somebody-else")
            refused = await place.ran("schemas", "register", **given)
            assert issuer.asked.count("bridge:of-somebody-else") == 1
        assert foreign.returncode == refused.returncode == 6
        assert "Check registry.user, registry.password, registry.scope and their rights" in foreign.stderr
        assert 'HTTP 401: {"error": "invalid_client"}. Check registry.user, registry.pass' in refused.stderr

        file.write_text(secret)
        away = await place.ran("schemas", "register", **given)
        assert (away.returncode, "registry.token_endpoint_url" in away.stderr) == (1, True)
        bridge = place.bridge("run", "-v", **given)
        await bridge.reaches("WaitingForKafka")
        await until(lambda: "token_endpoint_url" in bridge.text(), "the reason", so_far=bridge.text)
        port = urlsplit(issuer.address).port or 0
        with serving(secret, authority.server_context("127.0.0.1"), port) as issuer:
            issuer.answer = answer
            await bridge.reaches("Live")
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
    said = bridge.text() + "".join(ran.stdout + ran.stderr for ran in (made, doctor, foreign, refused, away))
    assert len(issued) >= 3
    assert [one for one in (secret, *issued, "of-somebody-else", "of-another-registry") if one in said] == []
