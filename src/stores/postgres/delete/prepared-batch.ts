import type { Deletion } from "../../contract/deletion.ts";
import { keysOf, quote, toArrayLiteral } from "./array-literals.ts";

/** A batch's deletions as statement parameters, and the token that identifies their records. */
export interface PreparedBatch {
  readonly token: string;
  /** Each plant's first deletion, which is in the statement. Later deletions of the plant are not. */
  readonly firstOf: ReadonlyMap<bigint, Deletion>;
  /** The deletions with an idempotency key, whether or not they are in the statement. */
  readonly keyed: readonly Deletion[];
  /** The deletions that are not in the statement because it contains another deletion with the same key. */
  readonly postponed: ReadonlySet<Deletion>;
  /** The ids in the statement, as an array literal. */
  readonly ids: string;
  /** The statement's parameters: ids, subjects, request ids, the token and, if there are any, keys. */
  readonly values: readonly string[];
}

/** Prepares deletions for an attempt. The token stays the same for all attempts. */
export function prepareBatch(token: string, pending: readonly Deletion[]): PreparedBatch {
  const firstOf = new Map<bigint, Deletion>();
  const keyed: Deletion[] = [];
  const postponed = new Set<Deletion>();
  const keys = new Set<string>();
  const subjects: string[] = [];
  const requestIds: string[] = [];
  for (const deletion of pending) {
    const { id, call } = deletion;
    const key = call.idempotencyKey;
    if (key !== undefined) keyed.push(deletion);
    if (firstOf.has(id)) continue;
    if (key !== undefined && keys.has(key)) {
      postponed.add(deletion);
      continue;
    }
    if (key !== undefined) keys.add(key);
    firstOf.set(id, deletion);
    subjects.push(quote(call.subject));
    requestIds.push(quote(call.requestId));
  }
  const ids = toArrayLiteral([...firstOf.keys()]);
  const values = [ids, toArrayLiteral(subjects), toArrayLiteral(requestIds), token];
  if (keyed.length > 0) values.push(keysOf([...firstOf.values()]));
  return { token, firstOf, keyed, postponed, ids, values };
}
