import type { DeleteCall } from "../../../service/index.ts";
import type { Requested } from "../../contract/backend.ts";
import { toStorableText } from "../../contract/storable-text.ts";

/** Returns the ids as `bigint[]`. */
export function idsOf(calls: readonly Requested[]): string {
  return toArrayLiteral(calls.map(({ id }) => id));
}

/** Returns a text of each call as `text[]`. */
export function textsOf(calls: readonly Requested[], toText: (call: DeleteCall) => string): string {
  return toArrayLiteral(calls.map(({ call }) => quote(toText(call))));
}

/** Returns idempotency keys as `text[]`, "" for none. NULL would become "NULL" with `array_nulls = off`. */
export function keysOf(calls: readonly Requested[]): string {
  return textsOf(calls, ({ idempotencyKey }) => idempotencyKey ?? "");
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
