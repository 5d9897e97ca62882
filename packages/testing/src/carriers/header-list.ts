import type { Field } from "./exchange.ts";

/** A header with as many small fields behind it as make its list so many bytes by RFC 9113 §6.5.2. */
export function headerOfListBytes(header: readonly Field[], bytes: number): Field[] {
  const list = [...header];
  const left = (): number => bytes - list.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
  while (left() >= 2 * smallFieldBytes) list.push(["a", "b"]);
  // The remaining bytes are enough for one field, but not for two.
  list.push(["a", "b".repeat(left() - smallFieldBytes + 1)]);
  return list;
}

const smallFieldBytes = 34;
