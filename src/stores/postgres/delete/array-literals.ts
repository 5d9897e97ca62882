import type { Deletion } from "./deletion.ts";
import { toStorableText } from "../../contract/storable-text.ts";

/** Returns idempotency keys as `text[]`, "" for none. NULL would become "NULL" with `array_nulls = off`. */
export function keysOf(pending: readonly Deletion[]): string {
  return toArrayLiteral(pending.map(({ call }) => quote(call.idempotencyKey ?? "")));
}

/** Returns a PostgreSQL array literal. Strings must be quoted with {@link quote}. */
export function toArrayLiteral(elements: readonly (string | bigint)[] | BigInt64Array): string {
  return `{${elements.join()}}`;
}

/** Returns the ids in an array literal, as strings. Returns an empty array for NULL. */
export function parseIdArray(array: string | null | undefined): readonly string[] {
  return array === null || array === undefined || array === "{}" ? [] : array.slice(1, -1).split(",");
}

/** Quotes a string for an array literal (postgresql.org/docs/current/arrays.html#ARRAYS-IO). */
export function quote(text: string): string {
  const storable = toStorableText(text);
  // `test` is several times faster than a `replaceAll` without a match.
  return `"${specialCharacter.test(storable) ? storable.replaceAll(everySpecial, "\\$&") : storable}"`;
}

const specialCharacter = /["\\]/;
const everySpecial = /["\\]/g;
