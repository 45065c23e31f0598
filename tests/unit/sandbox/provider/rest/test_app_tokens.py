"""Bearer tokens of the simulated provider: which are good, and what they give a right to."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from bridge_sandbox.provider.rest.tokens import SCOPES, InvalidToken, Tokens

NOW = 1_790_000_100.0
SECRET = "a key of more than 14 characters"
TOKENS = Tokens(SECRET)


def signed(claims: dict[str, Any], secret: str = SECRET, algorithm: str = "HS256") -> str:
    algorithms = ["HS256", "HS512"]
    return jwt.encode({"alg": algorithm}, claims, OctKey.import_key(secret), algorithms=algorithms)


def unsigned(header: Any) -> str:
    return ".".join(
        base64.urlsafe_b64encode(part).rstrip(b"=").decode()
        for part in (orjson.dumps(header), orjson.dumps({"exp": NOW + 60}), b"")
    )


def test_a_token_is_good_until_it_expires() -> None:
    header = f"Bearer {TOKENS.mint(NOW, seconds=60)}"
    assert TOKENS.scopes(NOW, header) == TOKENS.scopes(NOW + 59, header) == SCOPES
    for late in (60, 3600):
        with pytest.raises(InvalidToken, match="expired"):
            TOKENS.scopes(NOW + late, header)


def test_a_token_carries_its_rights() -> None:
    one = TOKENS.mint(NOW, scopes=frozenset({"currencies"}))
    assert TOKENS.scopes(NOW, f"Bearer {one}") == {"currencies"}
    assert TOKENS.scopes(NOW, f"bearer {signed({'exp': NOW + 1})}") == SCOPES
    assert TOKENS.scopes(NOW, f"Bearer {signed({'exp': NOW + 1, 'scope': ''})}") == frozenset()


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        TOKENS.mint(NOW),
        f"Basic {TOKENS.mint(NOW)}",
        "Bearer é",
        f"Bearer {TOKENS.mint(NOW)}x",
        f"Bearer {TOKENS.mint(NOW)}, Bearer {TOKENS.mint(NOW)}",
        f"Bearer {signed({'exp': NOW + 60}, secret='another key of many characters')}",
        f"Bearer {signed({'exp': NOW + 60}, algorithm='HS512')}",
        f"Bearer {signed({'scope': 'translations'})}",
        f"Bearer {signed({'exp': 'tomorrow'})}",
        f"Bearer {signed({'exp': NOW + 60, 'nbf': NOW + 30})}",
        f"Bearer {signed({'exp': NOW + 60, 'iat': NOW + 30})}",
        f"Bearer {unsigned({'alg': 'none'})}",
        f"Bearer {unsigned({'alg': 'HS256', 'crit': 5})}",
        f"Bearer {unsigned([])}",
    ],
    ids=repr,
)
def test_no_other_token_is_good(header: str | None) -> None:
    with pytest.raises(InvalidToken):
        TOKENS.scopes(NOW, header)
