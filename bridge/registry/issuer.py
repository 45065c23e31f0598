"""Tokens for the registry from an issuer, by OAuth's client credentials (RFC 6749, 4.4).

The registry's client can ask for them, too; but it takes no authority for the issuer, sends a refused secret
four times, and fails where the issuer does not say how long a token lasts.
"""

from __future__ import annotations

import time
from math import inf
from typing import Final
from urllib.parse import urlsplit

import httpx2

from bridge.config import RegistrySettings, env_name, proxy_of, tls
from bridge.config.secrets import Form
from bridge.errors import RegistryUnavailable, TopologyError
from bridge.formatting import plain_error, shortened
from bridge.masking import conceal, concealed

_TIMEOUT_SECONDS: Final = 10
_USED: Final = 0.8
"""The share of its time for which a token is used."""
_UNSAID_SECONDS: Final = 60
"""How long a token lasts if the issuer does not say it."""
_REFUSALS: Final = (400, 401, 403)


class Issuer:
    """Gives tokens to one client of the registry. Its calls block."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._token = ""
        self._renewed_from = -inf
        """Monotonic seconds."""

    def token(self) -> str:
        """Return a token that is valid for a while.

        Raises TopologyError if the issuer refuses, RegistryUnavailable if it gives none otherwise.
        """
        now = time.monotonic()
        if now >= self._renewed_from:
            self._token, seconds = self._ask()
            self._renewed_from = now + seconds * _USED
        return self._token

    def _ask(self) -> tuple[str, float]:
        """Return a new token, and for how many seconds it is valid."""
        settings, address = self._settings, self._settings.token_endpoint_url or ""
        who = f"the issuer of the registry's tokens, {urlsplit(address).hostname},"
        check = f"registry.token_endpoint_url ({env_name('registry', 'token_endpoint_url')})"
        context = tls.context("registry", settings)
        context.load_default_certs()  # beside `ca_file`: the issuer may be a public service
        try:
            answer = httpx2.post(
                address,
                data={"grant_type": "client_credentials"}
                | ({"scope": settings.scope} if settings.scope else {}),
                auth=(settings.user or "", settings.secret.read()),
                verify=context,
                proxy=proxy_of("registry", address),
                trust_env=False,
                timeout=_TIMEOUT_SECONDS,
            )
        except httpx2.HTTPError as error:
            why = f"{who} did not answer: {plain_error(error)}. Check {check}"
            raise RegistryUnavailable(f"{why} or registry.ca_file, and that it is running.") from None
        if answer.status_code in _REFUSALS:
            why = f"{who} gives none: HTTP {answer.status_code}: {shortened(concealed(answer.text))}"
            raise TopologyError(f"{why}. Check registry.user, registry.password and registry.scope.")
        try:
            given = answer.json()
            token, seconds = given["access_token"], float(given.get("expires_in", _UNSAID_SECONDS))
            if not token or Form.BEARER.problem(token):
                raise ValueError
        except (ValueError, TypeError, LookupError, AttributeError):
            why = f"{who} answers with HTTP {answer.status_code} and no token"
            raise RegistryUnavailable(f"{why}. If it stays, check {check}.") from None
        conceal(token, "token for the registry")
        return token, seconds
