import type { SQLOutputValue } from "node:sqlite";

/** An integer column as it is read with `readBigInts`; anything else is a fault of ours. */
export function toBigInt(value: SQLOutputValue | undefined): bigint {
  if (typeof value !== "bigint") throw new TypeError(`a column holds ${String(value)} and no integer`);
  return value;
}
