#!/usr/bin/env bash
# The registry client of KafkaJS reports a registry that is not there as HTTP status 400.
#
# Versions: @kafkajs/confluent-schema-registry 4.1.0 (npm), Node.js 20; nothing listens at the address.
# Expected: the error of the connection (ECONNREFUSED), without a status, so that a consumer can tell "away, try
#           again" from "the registry has refused this, a dead letter".
# Seen:     `name` is ResponseError and `status` is 400, "Error, status 400: connect ECONNREFUSED …"; the code of the
#           connection is only in the text. So is a name that does not resolve.
# Fails if that changes.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
npm install --silent --no-fund --no-audit --prefix . @kafkajs/confluent-schema-registry@4.1.0
cat >read.cjs <<'JAVASCRIPT'
const { createServer } = require("node:net");
const { SchemaRegistry } = require("@kafkajs/confluent-schema-registry");

const server = createServer().listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  server.close(async () => {
    for (const host of [`http://127.0.0.1:${port}`, "http://registry.invalid"]) {
      const registry = new SchemaRegistry({ host, retry: { retries: 0 } });
      try {
        await registry.decode(Buffer.from([0, 0, 0, 0, 7, 2]));
      } catch (error) {
        console.log(error.name, error.status, error.code, /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(error.message));
      }
    }
  });
});
JAVASCRIPT
node read.cjs | tee seen
diff seen - <<'SEEN'
ResponseError 400 undefined true
ResponseError 400 undefined true
SEEN
