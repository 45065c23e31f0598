// Drives the rows without a broker, as Driver.java of the Kafka Streams example does.

import { readFileSync } from "node:fs";
import avsc from "avsc";
import { Rows, typeHook } from "./rows.js";

const types = process.argv
  .slice(2)
  .map((file) => avsc.Type.forSchema(JSON.parse(readFileSync(file, "utf-8")), { typeHook }));
const rows = new Rows("en");
for (const record of readFileSync(0, "utf-8").split("\n")) {
  const [topic, key, hex] = record.split(" ");
  const value = Buffer.from(hex, "hex");
  const datum = hex === "-" ? null : types[value.readInt32BE(1) - 1].fromBuffer(value.subarray(5));
  for (const line of rows[topic](key, datum)) console.log(line);
}
