// Longs as BigInt, for every registry client that has avsc inside.

import avsc from "avsc";

// page
const bigints = avsc.types.LongType.__with({
  fromBuffer: (bytes) => bytes.readBigInt64LE(),
  toBuffer: (number) => Buffer.from(new BigInt64Array([number]).buffer),
  fromJSON: BigInt,
  toJSON: String,
  isValid: (number) => typeof number === "bigint",
  compare: (one, other) => (one < other ? -1 : one > other ? 1 : 0),
});
export const typeHook = (schema) => (schema === "long" || schema?.type === "long" ? bigints : undefined);
// /page

// JSON has neither BigInt nor -0: texts.
const text = (_, it) => (Object.is(it, -0) ? "-0" : typeof it === "bigint" ? `${it}` : it);
export const print = (key, value) => console.log(JSON.stringify({ key, value }, text));
