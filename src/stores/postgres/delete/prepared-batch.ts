import type { PendingDelete } from "../../delete-queue.ts";
import { keysOf, quote, toArrayLiteral } from "./array-literals.ts";

/** The deletions of a batch as parameters of a statement, and the token that identifies their records. */
export interface PreparedBatch {
  readonly token: string;
  /**
   * The first deletion of each plant, which is in the statement. Later deletions of the plant in the same batch are
   * not: for them the plant does not exist.
   */
  readonly firstOf: ReadonlyMap<bigint, PendingDelete>;
  /** The deletions with an idempotency key, whether or not they are in the statement. */
  readonly keyed: readonly PendingDelete[];
  /** The deletions that are not in the statement because it contains another deletion with the same key. */
  readonly postponed: ReadonlySet<PendingDelete>;
  /** The ids in the statement, as an array literal. */
  readonly ids: string;
  /** The parameters of the statement: ids, subjects, request ids, the token and, if there are any, keys. */
  readonly values: readonly string[];
}

/**
 * Prepares a batch for the next attempt. The token stays the same for all attempts.
 *
 * For a careful attempt, deletions that were cancelled meanwhile are rejected and excluded. Otherwise signals are not
 * read, because reading a signal creates it, and the queue has just checked the deletions that were queued.
 *
 * @param settled - the deletions that were settled by their key, which are excluded
 */
export function prepareBatch(
  token: string,
  pending: readonly PendingDelete[],
  isCareful = false,
  settled?: ReadonlySet<PendingDelete>,
): PreparedBatch {
  const firstOf = new Map<bigint, PendingDelete>();
  const keyed: PendingDelete[] = [];
  const postponed = new Set<PendingDelete>();
  const keys = new Set<string>();
  const subjects: string[] = [];
  const requestIds: string[] = [];
  for (const pendingDelete of pending) {
    const { id, call, reject } = pendingDelete;
    const key = call.idempotencyKey;
    if (isCareful && call.context.signal.aborted) {
      reject(call.context.signal.reason);
      continue;
    }
    if (key !== undefined) {
      if (settled?.has(pendingDelete) === true) continue;
      keyed.push(pendingDelete);
    }
    if (firstOf.has(id)) continue;
    if (key !== undefined && keys.has(key)) {
      postponed.add(pendingDelete);
      continue;
    }
    if (key !== undefined) keys.add(key);
    firstOf.set(id, pendingDelete);
    subjects.push(quote(call.subject));
    requestIds.push(quote(call.requestId));
  }
  const ids = toArrayLiteral([...firstOf.keys()]);
  const values = [ids, toArrayLiteral(subjects), toArrayLiteral(requestIds), token];
  if (keyed.length > 0) values.push(keysOf([...firstOf.values()]));
  return { token, firstOf, keyed, postponed, ids, values };
}
