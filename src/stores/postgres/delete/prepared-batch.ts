import type { Deletion } from "./deletion.ts";
import { keysOf, quote, toArrayLiteral } from "./array-literals.ts";

/** A batch's deletions as statement parameters. The token identifies the batch's records. */
export interface PreparedBatch {
  readonly token: string;
  /** Each plant's first deletion. The statement contains only the first deletion of each plant. */
  readonly firstDeletions: ReadonlyMap<bigint, Deletion>;
  /** All deletions with an idempotency key, even deletions that are not in the statement. */
  readonly keyed: readonly Deletion[];
  /** Deletions that are not in the statement, because another deletion in the statement has the same key. */
  readonly postponed: ReadonlySet<Deletion>;
  /** The statement's plant ids, as an array literal. */
  readonly ids: string;
  /** The statement's parameters: ids, subjects, request ids, and the token. If any deletion has a key, also keys. */
  readonly values: readonly string[];
}

/** Prepares deletions for an attempt. All attempts at a batch use the same token. */
export function prepareBatch(token: string, pending: readonly Deletion[]): PreparedBatch {
  const firstDeletions = new Map<bigint, Deletion>();
  const keyed: Deletion[] = [];
  const postponed = new Set<Deletion>();
  const keys = new Set<string>();
  const subjects: string[] = [];
  const requestIds: string[] = [];
  for (const deletion of pending) {
    const { id, call } = deletion;
    const key = call.idempotencyKey;
    if (key !== undefined) keyed.push(deletion);
    if (firstDeletions.has(id)) continue;
    if (key !== undefined && keys.has(key)) {
      postponed.add(deletion);
      continue;
    }
    if (key !== undefined) keys.add(key);
    firstDeletions.set(id, deletion);
    subjects.push(quote(call.subject));
    requestIds.push(quote(call.requestId));
  }
  const ids = toArrayLiteral([...firstDeletions.keys()]);
  const values = [ids, toArrayLiteral(subjects), toArrayLiteral(requestIds), token];
  if (keyed.length > 0) values.push(keysOf([...firstDeletions.values()]));
  return { token, firstDeletions, keyed, postponed, ids, values };
}
