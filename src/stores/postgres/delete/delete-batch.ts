import type { PendingDelete } from "../../delete-queue.ts";
import { toStorableText } from "../../storable-text.ts";

/** Deletions that share a statement, and the token that identifies their records. */
export interface DeleteBatch {
  readonly token: string;
  /**
   * The first deletion of each plant, which is in the statement; a later one in the same batch finds the plant deleted.
   */
  readonly firstOf: ReadonlyMap<bigint, PendingDelete>;
  /** The deletions with an idempotency key, in the statement or not. */
  readonly keyed: readonly PendingDelete[];
  /** The deletions that are left out of the statement because it has another one with their key. */
  readonly postponed: ReadonlySet<PendingDelete>;
  readonly ids: string;
  /** What the statement deletes and records, in the order of its parameters. */
  readonly values: readonly string[];
}

/**
 * Prepares a batch for the next attempt. The token stays the same for all attempts.
 *
 * After a fault, deletions that were given up meanwhile are rejected and left out. Before the first fault, signals are
 * not read, because reading creates them, and the queue has just checked the deletions that had to wait.
 *
 * @param answered - the deletions whose callers were answered by their key; they are left out
 */
export function toDeleteBatch(
  token: string,
  pending: readonly PendingDelete[],
  afterFault = false,
  answered?: ReadonlySet<PendingDelete>,
): DeleteBatch {
  const firstOf = new Map<bigint, PendingDelete>();
  const keyed: PendingDelete[] = [];
  const postponed = new Set<PendingDelete>();
  const keys = new Set<string>();
  const subjects: string[] = [];
  const requestIds: string[] = [];
  for (const one of pending) {
    const { id, call, reject } = one;
    const key = call.idempotencyKey;
    if (afterFault && call.context.signal.aborted) {
      reject(call.context.signal.reason);
      continue;
    }
    if (key !== undefined) {
      if (answered?.has(one) === true) continue;
      keyed.push(one);
    }
    if (firstOf.has(id)) continue;
    if (key !== undefined && keys.has(key)) {
      postponed.add(one);
      continue;
    }
    if (key !== undefined) keys.add(key);
    firstOf.set(id, one);
    subjects.push(quoted(call.subject));
    requestIds.push(quoted(call.requestId));
  }
  const ids = toArray([...firstOf.keys()]);
  const values = [ids, toArray(subjects), toArray(requestIds), token];
  if (keyed.length > 0) values.push(keysOf([...firstOf.values()]));
  return { token, firstOf, keyed, postponed, ids, values };
}

/**
 * Returns the idempotency keys of deletions as a parameter of the type `text[]`; an empty text, which no key is, for
 * those without. NULL would be a key of that name in a session with `array_nulls = off`.
 */
export function keysOf(pending: readonly PendingDelete[]): string {
  return toArray(pending.map(({ call }) => quoted(call.idempotencyKey ?? "")));
}

/** Returns the text of an array; texts must have been quoted. */
export function toArray(elements: readonly (string | bigint)[] | BigInt64Array): string {
  return `{${elements.join()}}`;
}

/** Returns the ids of an array in text form, as text; none for NULL. */
export function idsIn(array: string | null | undefined): readonly string[] {
  return array === null || array === undefined || array === "{}" ? [] : array.slice(1, -1).split(",");
}

// Quotes an element of an array in text form (postgresql.org/docs/current/arrays.html#ARRAYS-IO).
function quoted(text: string): string {
  const kept = toStorableText(text);
  // Checking first is several times cheaper than a replacement that finds nothing.
  return `"${special.test(kept) ? kept.replaceAll(everySpecial, "\\$&") : kept}"`;
}

const special = /["\\]/;
const everySpecial = /["\\]/g;
