"""`bridge` with another signer in place of AWS's: `python -m tests.signing FOLDER run`.

Its tokens last LIFE_SECONDS, and nobody has signed them: Kafka takes them where it has no validator. Each
becomes a line of FOLDER/signed; while FOLDER/away is there, it finds no credentials.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from bridge.cli import main

LIFE_SECONDS = 6


def token_of(user: str, end: float) -> str:
    """A token of that user, without a signature."""
    claims = {"sub": user, "iat": time.time(), "exp": end}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in ({"alg": "none"}, claims)]
    return b".".join([part.rstrip(b"=") for part in parts] + [b""]).decode()


def end_of(token: str) -> float:
    """When it ends, Unix seconds."""
    claims = token.split(".")[1]
    return float(json.loads(base64.urlsafe_b64decode(f"{claims}==="))["exp"])


def sign(region: str) -> tuple[str, int]:
    """As `MSKAuthTokenProvider.generate_auth_token`."""
    if (folder / "away").exists():
        raise AttributeError("'NoneType' object has no attribute 'access_key'")
    token = token_of("rotated", end := time.time() + LIFE_SECONDS)
    with (folder / "signed").open("a") as signed:
        signed.write(f"{token}\n")
    return token, int(end * 1000)


if __name__ == "__main__":
    folder = Path(sys.argv.pop(1))
    provider = SimpleNamespace(generate_auth_token=sign)
    sys.modules["aws_msk_iam_sasl_signer"] = SimpleNamespace(MSKAuthTokenProvider=provider)  # type: ignore[assignment]
    main()
