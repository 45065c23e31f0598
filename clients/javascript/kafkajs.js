// kafkajs with @kafkajs/confluent-schema-registry, avsc inside.

import { SchemaRegistry } from "@kafkajs/confluent-schema-registry";
import { Kafka } from "kafkajs";
import { print, typeHook } from "./bigints.js";

const kafka = new Kafka({ brokers: process.env.BRIDGE_KAFKA__BOOTSTRAP_SERVERS.split(","), logLevel: 1 });
if (process.argv.length > 2) {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "keys", messages: process.argv.slice(2).map((key) => ({ key, value: "" })) });
  process.exit();
}
// page
const registry = new SchemaRegistry({ host: process.env.BRIDGE_REGISTRY__URL }, {
  AVRO: {
    typeHook, // without: no long above 2^53
  },
});
const consumer = kafka.consumer({ groupId: "payouts" });
await consumer.connect();
await consumer.subscribe({ topic: "settlement.bets", fromBeginning: true });
await consumer.run({
  eachMessage: async ({ message }) =>
    print(`${message.key}`, message.value && (await registry.decode(message.value))),
});
// /page
