// The rows of a settled bet, one for each selection, with the names that are known now.

import avsc from "avsc";
import Big from "big.js";

const MOST_DECIMALS = 8; // of a payout, unless the stake has more

// Longs as BigInt: avsc stops at the first one beyond 2^53, and the time 0001-01-01 ("not set") is one.
const bigints = avsc.types.LongType.__with({
  fromBuffer: (bytes) => bytes.readBigInt64LE(),
  toBuffer: (number) => Buffer.from(new BigInt64Array([number]).buffer),
  fromJSON: BigInt,
  toJSON: String,
  isValid: (number) => typeof number === "bigint",
  compare: (one, other) => (one < other ? -1 : one > other ? 1 : 0),
});
export const typeHook = (schema) => (schema === "long" || schema?.type === "long" ? bigints : undefined);

export class Rows {
  #names = new Map(); // key of a translation → its text
  #counts = new Map(); // betId → number of rows
  #language;

  constructor(language) {
    this.#language = language;
  }

  /** Takes a translation in; null is a tombstone. Returns no lines: a later name changes no row. */
  translations(key, translation) {
    if (translation === null) this.#names.delete(key);
    else this.#names.set(key, translation.translations[this.#language]);
    return [];
  }

  /** Returns a line for each row of a bet; null, a tombstone, takes all of them back. */
  bets(betId, bet) {
    const items = bet?.selections ?? [];
    const before = this.#counts.get(betId) ?? 0;
    if (items.length > 0) this.#counts.set(betId, items.length);
    else this.#counts.delete(betId);
    return Array.from({ length: Math.max(items.length, before) }, (_, index) =>
      line(`${betId}:${index}`, index < items.length ? this.#row(bet, index) : null),
    );
  }

  #row(bet, index) {
    const item = bet.selections[index];
    return {
      betId: bet.betId,
      index,
      settlementVersion: bet.settlementVersion,
      settlementTime: time(bet.settlementTime),
      betSettlement: bet.betSettlement,
      ...money(bet.amount, bet.payout),
      selectionId: item.selectionId,
      result: result(item),
      sport: this.#name(`sport:${item.sportId}`),
      league: this.#name(`league:${item.competitionId}`),
      region: this.#name(`region:${item.countryId}`),
      event: item.event && this.#name(`event:${item.event.id}`),
      ...this.#picked(item.event, item),
      parts: (item.betBuilderItems ?? []).map((part) => ({ result: result(part), ...this.#picked(item.event, part) })),
    };
  }

  /** What was picked: by a selection, or by a part of a bet builder, which is of the same event. */
  #picked(event, { market, selectionId }) {
    return {
      market: event && market && this.#name(`market:${event.id}:${market.id}`),
      selection: this.#name(`selection:${selectionId}`),
    };
  }

  #name(key) {
    return this.#names.get(key) ?? null;
  }
}

const result = (item) => item.settlement?.settlementResult ?? null;

/** Money as decimals in texts: a stake is exact, a payout is a double, of 15 digits. */
function money(amount, payout) {
  const precision = Number(amount?.precision ?? 0n);
  const digits = Math.abs(payout) < 1e13 ? payout.toPrecision(15) : payout;
  const exact = Big(digits).round(Math.max(precision, MOST_DECIMALS), Big.roundHalfEven);
  const decimals = exact.toFixed().split(".")[1]?.length ?? 0;
  return {
    currency: amount && amount.currency,
    stake: amount && Big(`${amount.value}e-${precision}`).toFixed(precision),
    payout: exact.toFixed(Math.max(decimals, Math.min(precision, MOST_DECIMALS))),
  };
}

/** Date has milliseconds: the rest of the microseconds comes behind them, counted from the one before, also before 1970. */
function time(micros) {
  const rest = ((micros % 1000n) + 1000n) % 1000n;
  const date = new Date(Number((micros - rest) / 1000n)).toISOString();
  return date.replace("Z", `${`${rest}`.padStart(3, "0")}Z`);
}

/** As JSON with every digit of a BigInt. */
const line = (key, value) =>
  JSON.stringify({ key, value }, (_, it) => (typeof it === "bigint" ? JSON.rawJSON(`${it}`) : it));
