#!/usr/bin/env bash
# Confluent's Avro deserializer asks the registry for "associations" before it looks up the id that a message carries,
# and decodes nothing while that question is refused.
#
# Versions: confluent-kafka 2.16.1 (PyPI), with a registry that serves /schemas/ids/7 and nothing else.
# Expected: GET /schemas/ids/7 is all that a reader of messages with an id needs, and so all that its user must be
#           allowed, or that a proxy in front of the registry must let through.
# Seen:     GET /associations/resources/-/TOPIC comes first. 404 is taken as "none", and the schema is asked for. 403
#           (or 400, 405, 500) is raised for every message, and /schemas/ids/7 is never asked.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'confluent-kafka[avro]==2.16.1'
venv/bin/python - <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

SCHEMA = json.dumps({"type": "record", "name": "Bet", "fields": [{"name": "version", "type": "long"}]})


class Registry(BaseHTTPRequestHandler):
    elsewhere = 404
    asked = []

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.asked.append(path)
        known = path == "/schemas/ids/7"
        body = json.dumps({"schema": SCHEMA} if known else {"error_code": 40403, "message": "no"}).encode()
        self.send_response(200 if known else self.elsewhere)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
threading.Thread(target=server.serve_forever, daemon=True).start()
seen = {}
for Registry.elsewhere in (404, 403):
    Registry.asked.clear()
    client = SchemaRegistryClient({"url": f"http://127.0.0.1:{server.server_port}", "max.retries": 0})
    deserialize, context = AvroDeserializer(client), SerializationContext("bets", MessageField.VALUE)
    answers = []
    for _ in range(2):
        try:
            answers.append(deserialize(b"\0\0\0\0\7\2", context))
        except SchemaRegistryError as error:
            answers.append(error.http_status_code)
    seen[Registry.elsewhere] = (answers, list(Registry.asked))
    print(Registry.elsewhere, *seen[Registry.elsewhere])
server.shutdown()
asked = "/associations/resources/-/bets"
assert seen[404] == ([{"version": 1}] * 2, [asked, "/schemas/ids/7"])
assert seen[403] == ([403] * 2, [asked] * 2)
PYTHON
