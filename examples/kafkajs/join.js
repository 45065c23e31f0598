// Settled bets with their names, from the beginning of the topics: a line of JSON for each row that changes.

import { randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import { SchemaRegistry } from "@kafkajs/confluent-schema-registry";
import { Kafka, logLevel } from "kafkajs";
import { Rows, typeHook } from "./rows.js";

const {
  BRIDGE_KAFKA__BOOTSTRAP_SERVERS: servers = "127.0.0.1:9092",
  BRIDGE_REGISTRY__URL: host = "http://127.0.0.1:8080/apis/ccompat/v7",
  BRIDGE_TOPICS__PREFIX: prefix = "settlement",
} = process.env;
const { values: options } = parseArgs({
  options: { language: { type: "string", default: "en" }, "until-end": { type: "boolean", default: false } },
});
const kafka = new Kafka({ brokers: servers.split(","), logLevel: logLevel.ERROR });
const registry = new SchemaRegistry({ host }, { AVRO: { typeHook } });
const rows = new Rows(options.language);

process.on("SIGTERM", () => process.exit());
const fail = (message) => {
  console.error(`error: ${message}`);
  process.exit(1);
};

/** Returns where the partitions end that have records: partition → offset behind the last. */
async function ends(admin, topic) {
  const offsets = await admin.fetchTopicOffsets(`${prefix}.${topic}`);
  return new Map(offsets.filter(({ low, high }) => low !== high).map(({ partition, high }) => [partition, BigInt(high)]));
}

/** Gives `rows` each record of a topic, from now on; returns when it has those that were there. */
async function follow(topic, left) {
  // A group for each process, since everybody needs all translations, and the rows of a bet are counted in memory.
  const groupId = `${prefix}.kafkajs.${topic}.${randomUUID()}`;
  const consumer = kafka.consumer({ groupId, allowAutoTopicCreation: false });
  // kafkajs would try a record that it cannot read for ever, or live on without reading.
  consumer.on(consumer.events.CRASH, ({ payload }) => fail(payload.error.message));
  const caughtUp = new Promise((resolve) => {
    if (left.size === 0) resolve();
    // What lies behind the last record, a transaction's marker, comes in no message, but ends a batch.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { partition, lastOffset } }) => {
      if (BigInt(lastOffset) + 1n >= left.get(partition)) left.delete(partition);
      if (left.size === 0) resolve();
    });
  });
  await consumer.connect();
  await consumer.subscribe({ topic: `${prefix}.${topic}`, fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message: { key, value } }) => {
      const lines = rows[topic](`${key}`, value && (await registry.decode(value)));
      if (lines.length > 0) process.stdout.write(`${lines.join("\n")}\n`);
    },
  });
  await caughtUp;
}

const admin = kafka.admin();
await admin.connect();
const topics = await admin.listTopics();
const missing = ["bets", "translations"].map((topic) => `${prefix}.${topic}`).filter((name) => !topics.includes(name));
if (missing.length > 0) fail(`there is no topic ${missing.join(" and no ")}. Run \`bridge topics apply\`.`);
const [bets, translations] = [await ends(admin, "bets"), await ends(admin, "translations")];
await admin.disconnect();
await follow("translations", translations);
await follow("bets", bets);
if (options["until-end"]) process.exit();
