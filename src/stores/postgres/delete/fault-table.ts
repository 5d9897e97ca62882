import { sqlStateOf } from "../server/sql-state.ts";

/**
 * What an error means for the failed statement. Only `unknown` statements, and `skip` statements in doubt, may have
 * been committed. Other failed statements have had no effect.
 *
 * - `retry`: Concurrent transactions used the same rows. The statement is run again.
 * - `skip`: A timeout was exceeded, probably for a lock. The statement is run again without locked plants. If the
 *   statement may have been committed (`Placement.mayBeCommitted`), its batch is in doubt.
 * - `wait`: The server lacks a resource. The statement is run again.
 * - `reconnect`: The statement is run again on a new connection.
 * - `unknown`: The statement may have been committed. The attempt is run again on a new connection. The deletion
 *   records then show which plants were deleted.
 * - `split`: The server refuses some of the plants. The batch is split into halves, so that only the refused plants
 *   fail.
 * - `isolate`: A trigger has failed, but not to protect a plant. The batch is split into halves, so that only the
 *   trigger's plants fail. A later call may delete these plants, for example after a privilege is granted.
 * - `fail`: The statement would fail again.
 */
export type Verdict = "retry" | "skip" | "wait" | "reconnect" | "unknown" | "split" | "isolate" | "fail";

/**
 * The server's state. A `refusing` server refuses everything. An `unavailable` server may only lack a resource. A
 * `busy` server runs conflicting transactions. For a `healthy` server, the error affects only some plants.
 */
export type ServerState = "refusing" | "unavailable" | "busy" | "healthy";

/** A batch's next step: a careful attempt, an attempt for each half, or failure. */
export type Step = "retry" | "split" | "fail";

/**
 * The consequences of each verdict: the next step (see {@link nextStep}), whether it uses another connection, and the
 * server's state if the batch fails. Doubt does not change the consequences, because no statement resolves the doubt.
 */
export const consequences: Readonly<
  Record<Verdict, { readonly next: Step; readonly reconnects: boolean; readonly server: ServerState }>
> = {
  retry: { next: "retry", reconnects: false, server: "busy" },
  skip: { next: "retry", reconnects: false, server: "busy" },
  wait: { next: "retry", reconnects: false, server: "unavailable" },
  reconnect: { next: "retry", reconnects: true, server: "unavailable" },
  unknown: { next: "retry", reconnects: true, server: "unavailable" },
  split: { next: "split", reconnects: false, server: "healthy" },
  isolate: { next: "split", reconnects: false, server: "healthy" },
  fail: { next: "fail", reconnects: false, server: "refusing" },
};

/**
 * Returns a batch's next step after an error.
 *
 * An attempt that skips locked plants may still time out waiting for a lock. If the whole table is locked, the batch
 * waits. If a row that depends on a plant is locked, such as in another table, the batch is split to find the plant.
 *
 * @param hasTimedOut - whether an earlier attempt has timed out. The failed attempt has then skipped locked plants
 * @param hasUnreadKeys - whether some idempotency keys are not looked up yet. A key's earlier use takes precedence
 * over the error
 */
export function nextStep(verdict: Verdict, fault: unknown, hasTimedOut: boolean, hasUnreadKeys: boolean): Step {
  const meetsLockOfPlant = hasTimedOut && verdict === "skip" && isRaisedWithin(fault);
  const step = meetsLockOfPlant ? "split" : consequences[verdict].next;
  return step === "split" && hasUnreadKeys ? "retry" : step;
}

/** A row for a SQLSTATE, or for a class with two characters (postgresql.org/docs/current/errcodes-appendix.html). */
export interface FaultRow {
  readonly sqlState: string;
  readonly verdict: Verdict;
  /** The verdict on an error that was raised within the statement, before its commit. Default {@link verdict}. */
  readonly within?: Verdict;
  readonly why: string;
}

/**
 * The fault table. A code takes precedence over its class. A code without a row is `unknown`, or `isolate` within the
 * statement. Only rows with `split` protect a plant, because a trigger may fail for many other reasons.
 */
export const faultTable: readonly FaultRow[] = [
  { sqlState: "40001", verdict: "retry", why: "serialization failure; rolled back" },
  { sqlState: "40P01", verdict: "retry", why: "victim of a deadlock; rolled back" },
  { sqlState: "40003", verdict: "unknown", why: "the server does not know whether the statement was completed" },
  { sqlState: "55P03", verdict: "skip", why: "lock_timeout exceeded" },
  { sqlState: "57014", verdict: "skip", why: "the statement was cancelled, for example by statement_timeout" },
  { sqlState: "53", verdict: "wait", why: "the server is out of memory, disk space or another resource" },
  { sqlState: "53300", verdict: "reconnect", why: "too many connections" },
  { sqlState: "57P03", verdict: "reconnect", why: "the server is starting, stopping or recovering" },
  { sqlState: "25006", verdict: "reconnect", why: "the server is read-only: a standby, or a replaced primary" },
  { sqlState: "25P03", verdict: "unknown", within: "reconnect", why: "idle_in_transaction_session_timeout exceeded" },
  {
    sqlState: "25P04",
    verdict: "unknown",
    within: "reconnect",
    why: "transaction_timeout exceeded, perhaps at commit",
  },
  { sqlState: "57P01", verdict: "unknown", why: "the server is shutting down; it may have committed" },
  { sqlState: "57P02", verdict: "unknown", why: "another server process crashed" },
  { sqlState: "57P05", verdict: "unknown", why: "the idle connection was closed" },
  { sqlState: "08", verdict: "unknown", why: "the connection failed" },
  { sqlState: "58", verdict: "unknown", why: "an operating system error on the server" },
  { sqlState: "XX", verdict: "unknown", why: "an internal error of the server" },
  { sqlState: "22", verdict: "split", why: "the server rejects a value, or a trigger drops the record" },
  { sqlState: "23", verdict: "split", why: "a constraint is violated: another table references a plant" },
  { sqlState: "P0", verdict: "split", why: "a trigger raised an error" },
  { sqlState: "28", verdict: "fail", within: "isolate", why: "authentication failed" },
  { sqlState: "3D", verdict: "fail", within: "isolate", why: "the database does not exist" },
  { sqlState: "3F", verdict: "fail", within: "isolate", why: "the schema does not exist" },
  { sqlState: "42", verdict: "fail", within: "isolate", why: "a table does not exist, or the user lacks a privilege" },
  { sqlState: "0A", verdict: "fail", within: "isolate", why: "the server lacks a feature that the statement uses" },
];

// Matches an error context of the store's own statement on Citus, which starts with a worker or with
// `plantstore_delete`. The context of a trigger's error starts with the trigger's function.
const ownContext: RegExp =
  /^while executing command on \S+$|^(?:SQL statement "(?:(?!PL\/pgSQL function )[^])*"\n)?PL\/pgSQL function \S*plantstore_delete\(/;

/** Matches the index that prevents using an idempotency key twice. On Citus, the name ends with the shard's number. */
const keyIndex = /^deletions_by_key(?:_\d+)?$/;

/** Matches PostgreSQL's SQLSTATE classes. Applications may define SQLSTATEs in other classes. */
const classes = /^(?:0[01238ABFLPZ9]|10|2[0-8BDF]|3[489BDF]|4[024]|5[3-578]|72|F0|HV|P0|XX)/;

const rows: ReadonlyMap<string, FaultRow> = new Map(faultTable.map((row) => [row.sqlState, row]));

/**
 * Returns the verdict on a statement's error. Without a SQLSTATE, the connection failed, perhaps after the commit.
 *
 * A conflict in the idempotency key index does not mean that a plant is refused. Another transaction has used the key
 * at the same time, and a retry finds the other transaction's record.
 *
 * A trigger may raise any SQLSTATE. A class that PostgreSQL does not use means that the trigger protects a plant.
 */
export function verdictOn(fault: unknown): Verdict {
  const code = sqlStateOf(fault);
  if (code === undefined) return "unknown";
  if (isKeyConflict(fault)) return "retry";
  const row = rows.get(code) ?? rows.get(code.slice(0, 2));
  if (!isRaisedWithin(fault)) return row?.verdict ?? "unknown";
  if (row !== undefined) return row.within ?? row.verdict;
  return classes.test(code) ? "isolate" : "split";
}

function isKeyConflict(fault: unknown): boolean {
  return fault instanceof Error && "constraint" in fault && keyIndex.test(String(fault.constraint));
}

// Only for errors within a statement, such as in a trigger or by a foreign key, the server adds a context (`where`).
function isRaisedWithin(fault: unknown): boolean {
  return fault instanceof Error && "where" in fault && typeof fault.where === "string" && !ownContext.test(fault.where);
}
