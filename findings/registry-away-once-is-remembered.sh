#!/usr/bin/env bash
# The registry client of Rust keeps an error for ever: one 503 for an id, and messages with that id are never decoded.
#
# Versions: schema_registry_converter 4.10.0 (crates.io), with a registry that answers 503 once, then the schema.
# Expected: an error that says `retriable` is asked for again with the next message, or after a while.
# Seen:     `retriable: true, cached: true`, and the registry is not asked again in the life of the decoder. A new
#           decoder, or `remove_errors_from_cache`, is what helps.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
registry=
trap '[ -z "$registry" ] || kill "$registry" 2>/dev/null || true; rm -rf "$place"' EXIT
cd "$place"
cat >registry.py <<'PYTHON'
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

SCHEMA = json.dumps({"type": "record", "name": "Bet", "fields": [{"name": "version", "type": "long"}]})


class Registry(BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        Registry.asked += 1
        Path("asked").write_text(f"{Registry.asked}\n")
        away = Registry.asked == 1
        body = json.dumps({"error_code": 50001} if away else {"schema": SCHEMA, "schemaType": "AVRO"}).encode()
        self.send_response(503 if away else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Registry)
Path("new").write_text(str(server.server_port))
Path("new").rename("port")
server.serve_forever()
PYTHON
python3 registry.py &
registry=$!
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "example"
version = "0.1.0"
edition = "2021"

[dependencies]
schema_registry_converter = { version = "=4.10.0", features = ["avro"] }
tokio = { version = "1", features = ["rt", "macros"] }
TOML
cat >src/main.rs <<'RUST'
use schema_registry_converter::async_impl::avro::AvroDecoder;
use schema_registry_converter::async_impl::schema_registry::SrSettings;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let address = format!("http://127.0.0.1:{}", std::env::args().nth(1).unwrap());
    let decoder = AvroDecoder::new(SrSettings::new(address));
    let message: &[u8] = &[0, 0, 0, 0, 7, 2];
    for _ in 0..3 {
        match decoder.decode(Some(message)).await {
            Ok(found) => println!("{:?}", found.value),
            Err(error) => println!("retriable {} cached {}", error.retriable, error.cached),
        }
    }
    decoder.remove_errors_from_cache();
    println!("{}", decoder.decode(Some(message)).await.is_ok());
}
RUST
CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} cargo build --quiet
until [ -s port ]; do sleep 0.1; done
./target/debug/example "$(cat port)" | tee seen
cat asked | tee -a seen
diff seen - <<'SEEN'
retriable true cached true
retriable true cached true
retriable true cached true
true
2
SEEN
