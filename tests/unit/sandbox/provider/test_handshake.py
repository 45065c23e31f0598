"""The revision and the credentials of a handshake."""

from __future__ import annotations

from typing import Any

import pytest

from bridge_sandbox.provider.settings import SimulatorSettings


def asked(query: str, headers: dict[str, str] | None = None, **settings: Any) -> tuple[int | None, int]:
    """The revision, and the status of the refusal or 101."""
    found = SimulatorSettings(**settings).handshake(query, lambda name: (headers or {}).get(name, ""))
    return found.revision, found.refusal.status if found.refusal else 101


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (None, 101)),
        ("x=1", (None, 101)),
        ("revision=0", (0, 101)),
        ("revision=x&revision=1790000000", (1_790_000_000, 101)),
        *((f"revision={wrong}", (None, 400)) for wrong in ("", "now", "-5", "1.5", "1e9", "٣", "1" * 16)),
    ],
)
def test_the_last_revision_counts_if_it_is_a_timestamp(query: str, expected: tuple[int | None, int]) -> None:
    assert asked(query) == expected


@pytest.mark.parametrize(
    ("auth", "query", "headers"),
    [
        ({"auth": "bearer"}, "revision=7", {"Authorization": "Bearer s3cret"}),
        ({"auth": "header", "auth_name": "X-Key"}, "revision=7", {"X-Key": "s3cret"}),
        ({"auth": "query", "auth_name": "key"}, "revision=7&key=s3cret", {}),
    ],
)
def test_without_credentials_the_answer_is_401_whatever_the_revision(
    auth: dict[str, Any], query: str, headers: dict[str, str]
) -> None:
    settings: dict[str, Any] = {**auth, "auth_value": "s3cret"}
    wrong = {name: f"{value}x" for name, value in headers.items()}
    assert asked(query, headers, **settings) == (7, 101)
    assert asked(query if headers else f"{query}x", wrong, **settings) == (7, 401)
    assert asked("revision=x", **settings) == (None, 401)


@pytest.mark.parametrize("prefix", ["", "Bearer "])
def test_a_client_is_known_by_its_credential(prefix: str) -> None:
    auth: dict[str, Any] = {"auth": "bearer"} if prefix else {"auth": "header", "auth_name": "Authorization"}
    settings = SimulatorSettings(**auth, auth_value="of all", clients={"a": "of a", "b": "of b"})

    def found(credential: str) -> tuple[str, int | None]:
        def header(name: str) -> str:
            return f"{prefix}{credential}" if name == "Authorization" else ""

        _, refusal, client = settings.handshake("revision=7", header)
        return client, refusal.status if refusal else None

    assert [found(it) for it in ("of a", "of b", "of all")] == [("a", None), ("b", None), ("", None)]
    assert found("a") == ("", 401)


def test_without_credentials_a_client_has_no_name() -> None:
    assert SimulatorSettings(clients={"a": ""}).handshake("", lambda _: "").client == ""
    with pytest.raises(ValueError, match="auth = bearer needs auth_value"):
        SimulatorSettings(auth="bearer", clients={"a": ""})
