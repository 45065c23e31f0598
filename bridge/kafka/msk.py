"""Makes the tokens by which Amazon MSK knows a client, signed with the AWS credentials of this process."""

from __future__ import annotations

import threading
import time

from bridge.errors import SettingsError
from bridge.kafka.errors import KafkaUnavailable
from bridge.masking import conceal

LIFE_SECONDS = 300.0
"""How long a token is used, of its 15 minutes: the credentials that signed it may end before it does."""
SHARED_SECONDS = LIFE_SECONDS / 2
"""So long a new client gets the token of the one before: the credentials may be minutes away."""
_MISSING = "'NoneType' object has no attribute 'access_key'"
"""How the signer says that it finds no credentials."""

_signing = threading.Lock()
_made: dict[str, tuple[str, float]] = {}
"""The last token of each region, and its end."""


def token(region: str) -> tuple[str, float]:
    """Return a token for clusters of the region, and its end, Unix seconds. May wait for AWS.

    Raises SettingsError if the signer is not installed, KafkaUnavailable if it gives none.
    """
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError:
        raise SettingsError(
            "kafka.sasl_oauthbearer_msk_region needs AWS's signer: install the extra, "
            "pip install 'settlement-bridge[msk]'"
        ) from None
    with _signing:
        now = time.time()
        made, end = _made.get(region, ("", 0.0))
        if SHARED_SECONDS < end - now <= LIFE_SECONDS:  # the clock may have been set back
            return made, end
        try:
            made, milliseconds = MSKAuthTokenProvider.generate_auth_token(region)
        except Exception as error:  # noqa: BLE001  # whatever AWS's libraries raise, Kafka is not to be had now
            why = f"{type(error).__name__}: {error}".strip()
            if _MISSING in why:
                why = "no AWS credentials are found; give this process a role, or AWS_ACCESS_KEY_ID and so on"
            raise KafkaUnavailable(f"no token for Amazon MSK in {region}: AWS's signer: {why}") from None
        conceal(made, "AWS's token")
        _made[region] = made, end = made, min(milliseconds / 1000, now + LIFE_SECONDS)
    return made, end
