import type { Field } from "./exchange.ts";

/** Appends small fields to a header, so that the header list has the size `bytes` (RFC 9113 §6.5.2). */
export function headerOfListBytes(header: readonly Field[], bytes: number): Field[] {
  const list = [...header];
  const remaining = (): number => bytes - list.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
  while (remaining() >= 2 * smallFieldBytes) list.push(["a", "b"]);
  // The remaining bytes are enough for one field, but not for two.
  list.push(["a", "b".repeat(remaining() - smallFieldBytes + 1)]);
  return list;
}

const smallFieldBytes = 34;
