"""Bearer tokens of the REST side: JSON Web Tokens, signed with HS256 (interface, "Authentication")."""

from __future__ import annotations

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

_ALGORITHM = "HS256"
SCOPES = frozenset({"translations", "currencies"})
"""The rights that a token can carry, in its claim `scope`, separated by spaces."""


class InvalidToken(Exception):
    """The token is missing, malformed, expired, not yet valid or signed with another key."""


class Tokens:
    """Creates and checks tokens with one key, which other issuers may share."""

    def __init__(self, secret: str) -> None:
        self._key = OctKey.import_key(secret)

    def mint(self, now: float, *, seconds: float = 86_400, scopes: frozenset[str] = SCOPES) -> str:
        """Create a token that is valid for `seconds` from `now` (Unix seconds), with these rights."""
        claims = {"iat": int(now), "exp": int(now + seconds), "scope": " ".join(sorted(scopes))}
        return jwt.encode({"alg": _ALGORITHM}, claims, self._key)

    def scopes(self, now: float, authorization: str | None) -> frozenset[str]:
        """The rights of the caller with this `Authorization` header at `now` (Unix seconds).

        A token without the claim `scope` has them all. Raises InvalidToken, with the reason.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise InvalidToken("there is no Authorization header with a bearer token")
        expectations = jwt.JWTClaimsRegistry(now=int(now), exp={"essential": True})
        try:
            claims = jwt.decode(token.strip(), self._key, algorithms=[_ALGORITHM]).claims
            expectations.validate(claims)
        except (JoseError, TypeError) as error:  # TypeError: the library trips over some headers
            raise InvalidToken(f"the token is not valid: {error}") from None
        scope = claims.get("scope")
        return SCOPES if scope is None else frozenset(str(scope).split())
