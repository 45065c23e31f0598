#!/usr/bin/env bash
# A registry's client with OAuth trusts other authorities for the issuer than for the registry, sends a refused secret
# four times, and needs `expires_in`, which RFC 6749 only recommends.
#
# Versions: confluent-kafka 2.16.0 with Authlib 1.9.9 and httpx2 2.16.2, Python 3.11.
# Expected: `ssl.ca.location` counts for both servers; 401 with `invalid_client` is final; a token that does not say how
#           long it lasts is used.
# Seen:     the issuer's certificate is refused, registry and issuer having the same; each refused secret is four
#           requests; the first request of the registry succeeds, the next one raises KeyError: 'expires_in'. A function
#           of one's own (bearer.auth.credentials.source=CUSTOM) has none of this.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3.11 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  'confluent-kafka[schemaregistry]==2.16.0' authlib==1.9.9 httpx2==2.16.2
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out own.pem -days 2 -subj /CN=own \
  -addext subjectAltName=IP:127.0.0.1 2>/dev/null
cat >run.py <<'PYTHON'
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from confluent_kafka.schema_registry import SchemaRegistryClient

asked = {"issuer": 0, "registry": 0}
refuses = False


class Both(BaseHTTPRequestHandler):
    def answer(self):
        is_issuer = self.path == "/token"
        asked["issuer" if is_issuer else "registry"] += 1
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        token = {"error": "invalid_client"} if refuses else {"access_token": "a", "token_type": "Bearer"}
        body = json.dumps(token if is_issuer else ["bets-value"]).encode()
        self.send_response(401 if is_issuer and refuses else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def served(tls=False):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Both)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("own.pem", "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"


def client(registry, issuer):
    return SchemaRegistryClient(
        {
            "url": registry,
            "ssl.ca.location": "own.pem",
            "retries.wait.ms": 10,
            "bearer.auth.credentials.source": "OAUTHBEARER",
            "bearer.auth.client.id": "me",
            "bearer.auth.client.secret": "secret",
            "bearer.auth.scope": "all",
            "bearer.auth.issuer.endpoint.url": f"{issuer}/token",
            "bearer.auth.logical.cluster": "",
        }
    )


def outcome(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


plain, secured = served(), served(tls=True)
silent = client(secured, plain)
first, second = outcome(silent.get_subjects), outcome(silent.get_subjects)
print(f"no expires_in: {first}, then {second}")
untrusted = outcome(client(secured, secured).get_subjects)
print(f"the registry's certificate at the issuer: {untrusted}")
asked["issuer"], refuses = 0, True
refused = outcome(client(secured, plain).get_subjects)
print(f"refused after {asked['issuer']} requests: {refused}")
sys.exit(
    not (
        (first, second) == (["bets-value"], "KeyError: 'expires_in'")
        and "CERTIFICATE_VERIFY_FAILED" in untrusted
        and asked["issuer"] == 4
        and "invalid_client" in refused
    )
)
PYTHON
env -u SSL_CERT_FILE -u SSL_CERT_DIR venv/bin/python run.py
