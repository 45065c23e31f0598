"""Provider, REST side and registry want TLS and certificates, which are rotated."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import urlsplit

from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.encrypted import Front, fronts
from tests.harness import Place, assert_exact, until
from tests.integration.snapshots import LANGUAGES, SMALL
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
                assert [await one.end() for one in (bridge, job)] == [0, 0]
