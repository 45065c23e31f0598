#!/usr/bin/env bash
# What `lookup_schema` returns as the schema of the registry is the schema that was asked with.
#
# Versions: confluent-kafka 2.16.0, Python 3.11, with a registry that takes a schema for one with another default, as
#           Apicurio does.
# Expected: the schema under the id, as the registry has answered, so that a difference can be seen.
# Seen:     id and version are the registry's, the schema is the caller's: they look alike. `get_schema` by that id shows
#           the other one.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3.11 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'confluent-kafka[schemaregistry]==2.16.0'
cat >run.py <<'PYTHON'
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient


def with_default(symbol):
    kind = {"type": "enum", "name": "Result", "symbols": ["Win", "Lose"], "default": symbol}
    return json.dumps({"type": "record", "name": "Bet", "fields": [{"name": "result", "type": kind}]})


class Registry(BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        found = {"subject": "bets-value", "version": 1, "id": 7, "schema": with_default("Win")}
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = SchemaRegistryClient({"url": f"http://127.0.0.1:{server.server_port}"})
found = client.lookup_schema("bets-value", Schema(with_default("Lose"), "AVRO"))
shown = [json.loads(it.schema_str)["fields"][0]["type"]["default"] for it in (found.schema, client.get_schema(7))]
print(f"id {found.schema_id}; default by lookup_schema and by get_schema: {', '.join(shown)}")
sys.exit((found.schema_id, shown) != (7, ["Lose", "Win"]))
PYTHON
venv/bin/python run.py
