#!/usr/bin/env bash
# AWS's signer for Amazon MSK says without credentials that a NoneType has no access_key, and dates a token beyond its
# credentials.
#
# Versions: aws-msk-iam-sasl-signer-python 1.0.2, botocore 1.44.8, Python 3.11; no network.
# Expected: an error that says that no credentials were found, as botocore's NoCredentialsError does; for temporary
#           credentials that end in six minutes, a token that ends with them.
# Seen:     AttributeError: 'NoneType' object has no attribute 'access_key'. The token ends in 15 minutes whatever is
#           left of the credentials, so a client that asks for the next one at 80 % of that goes on with one whose
#           credentials have ended.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3.11 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check aws-msk-iam-sasl-signer-python==1.0.2 botocore==1.44.8
cd "$place"
cat >credentials.py <<'PYTHON'
import json
from datetime import datetime, timedelta, timezone

end = (datetime.now(timezone.utc) + timedelta(minutes=6)).isoformat()
keys = {"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "secret", "SessionToken": "session"}
print(json.dumps({"Version": 1, "Expiration": end, **keys}))
PYTHON
echo "[profile temporary]
credential_process = $place/venv/bin/python $place/credentials.py" >config
cat >run.py <<'PYTHON'
import os
import sys
import time

from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

try:
    MSKAuthTokenProvider.generate_auth_token("eu-central-1")
    raised = "nothing"
except Exception as error:
    raised = f"{type(error).__name__}: {error}"
os.environ["AWS_PROFILE"] = "temporary"
_, end = MSKAuthTokenProvider.generate_auth_token("eu-central-1")
seconds = end / 1000 - time.time()
print(f"without credentials: {raised}; a token of credentials that end in 360 s: {seconds:.0f} s")
sys.exit(not (raised == "AttributeError: 'NoneType' object has no attribute 'access_key'" and seconds > 890))
PYTHON
env -i PATH="$PATH" HOME="$place" AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE="$place/config" \
	"$place/venv/bin/python" run.py
