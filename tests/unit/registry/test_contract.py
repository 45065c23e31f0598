"""The bridge gets what it needs of each registry, as far as one in memory answers like it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from bridge.avro.schemas import TOPICS
from bridge.config import RegistrySettings
from bridge.errors import TopologyError
from bridge.registry import Registry, client
from tests.contracts.registry import RegistryContract
from tests.fake_registry import APICURIO, CONFLUENT, PROFILES, FakeRegistry, Profile, served

IDS = (0, 100_001, 2**31 - 1 - 2 * len(TOPICS))
"""First ids, of which each is one that a record can carry."""


@pytest.fixture(
    params=(*PROFILES, APICURIO, *(CONFLUENT._replace(first_id=first) for first in IDS)),
    ids=lambda it: f"{it.name}-{it.first_id}",
)
def profile(request: pytest.FixtureRequest) -> Profile:
    found: Profile = request.param
    return found


@pytest.fixture
def fake(profile: Profile) -> FakeRegistry:
    return FakeRegistry(profile)


@pytest.fixture
def url(fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(client, "_LAG_SECONDS", 0.1)
    with served(fake) as url:
        yield url


class TestFake(RegistryContract):
    """The suite."""

    @pytest.fixture
    def prefix(self) -> str:
        return "p"


@pytest.mark.parametrize("user", ["bridge", None])
def test_a_wrong_password_or_token_is_told_whatever_the_refusal_looks_like(
    fake: FakeRegistry, url: str, user: str | None
) -> None:
    fake.password = "right-0815"
    settings = RegistrySettings(url=url, user=user, password=SecretStr("wrong-4711"))
    with (
        Registry(settings) as registry,
        pytest.raises(TopologyError, match=r"registry\.user, registry\.password") as caught,
    ):
        registry.register("p")
    assert type(caught.value) is TopologyError
    with Registry(settings.model_copy(update={"password": SecretStr("right-0815")})) as registry:
        assert set(registry.register("p")) == set(TOPICS)
    assert fake.users == (
        {"bridge:wrong-4711", "bridge:right-0815"} if user else {"wrong-4711", "right-0815"}
    )
