#!/usr/bin/env bash
# A client whose oauth_cb raises blocks for ten seconds and does not say why; one whose callback works blocks for one.
#
# Versions: confluent-kafka 2.16.0 (librdkafka 2.16.0), Python 3.11; no broker is asked.
# Expected: the constructor raises what the callback has raised, at once, or returns as fast as with a password.
# Seen:     the callback is called by another thread, which needs the interpreter that the constructor holds until it
#           looks for the token again, a second later. If it raises, the constructor looks for ten seconds and raises
#           "OAuth token not set within 10 seconds timeout"; the callback's error is nowhere, not in error_cb either.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3.11 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check confluent-kafka==2.16.0
cat >"$place/run.py" <<'PYTHON'
import base64
import json
import sys
import time

from confluent_kafka import KafkaException, Producer


def works(_):
    end = time.time() + 60
    parts = ({"alg": "none"}, {"sub": "somebody", "iat": time.time(), "exp": end})
    text = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*text, ""]), end


def fails(_):
    raise RuntimeError("the issuer is away")


said = []


def made(callback):
    settings = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": callback,
        "error_cb": lambda error: said.append(error.str()),
        "log_level": 0,
    }
    began, outcome = time.monotonic(), "made"
    try:
        Producer(settings)
    except KafkaException as error:
        outcome = error.args[0].str()
    return outcome, time.monotonic() - began


good, bad = made(works), made(fails)
for name, (outcome, seconds) in (("works", good), ("fails", bad)):
    print(f"a callback that {name}: {outcome}, after {seconds:.1f} s")
silent = not any("away" in text for text in (bad[0], *said))
sys.exit(not (good[0] == "made" and 0.9 < good[1] and bad[1] > 9 and "10 seconds timeout" in bad[0] and silent))
PYTHON
"$place/venv/bin/python" "$place/run.py"
