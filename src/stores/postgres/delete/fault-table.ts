import { sqlStateOf } from "../server/sql-state.ts";

/**
 * What an error means for the failed statement. Only `unknown` statements may have been committed.
 *
 * - `retry`: Repeated on a new connection, because of other transactions, a missing resource or a failover.
 * - `unknown`: Repeated, too. The deletion records then show which plants were deleted.
 * - `refused`: The database protects a plant. The batch is halved, so that only the protected plants fail.
 * - `broken`: A trigger has failed, but not to protect a plant. Also halved. A later call may delete the plants.
 * - `locked`: A row or key that a plant depends on is locked. Also halved. The plants are tried again later.
 * - `fail`: The statement would fail again.
 */
export type Verdict = "retry" | "unknown" | "refused" | "broken" | "locked" | "fail";

/** Verdicts on errors that concern only some plants of a batch. */
export const concernsPlants: ReadonlySet<Verdict> = new Set(["refused", "broken", "locked"]);

/**
 * The verdicts by SQLSTATE or class (postgresql.org/docs/current/errcodes-appendix.html), where a code takes precedence
 * over its class. The second verdict is for an error within the statement, such as in a trigger. A code that is not
 * listed is `unknown`, or `broken` within the statement. Only `refused` protects a plant, because a trigger may fail for
 * many other reasons.
 */
export const faultTable: Readonly<Record<string, readonly [verdict: Verdict, within?: Verdict]>> = {
  // Serialization failures and deadlocks are rolled back. For 40003, the server does not know the outcome.
  "40001": ["retry"],
  "40P01": ["retry"],
  "40003": ["unknown"],
  // A timeout for a lock, or for the statement.
  "55P03": ["retry", "locked"],
  "57014": ["retry", "locked"],
  // Disk space, memory, connections and other resources.
  "53": ["retry"],
  // The server is starting, stopping, recovering or read-only.
  "57P03": ["retry"],
  "25006": ["retry"],
  // Timeouts of the transaction, perhaps at its commit.
  "25P03": ["unknown", "retry"],
  "25P04": ["unknown", "retry"],
  // The server is shutting down, another process crashed, or the idle connection was closed.
  "57P01": ["unknown"],
  "57P02": ["unknown"],
  "57P05": ["unknown"],
  // The connection, the operating system, an internal error.
  "08": ["unknown"],
  "58": ["unknown"],
  XX: ["unknown"],
  // A rejected value or a dropped record, a violated constraint, an error that a trigger has raised.
  "22": ["refused"],
  "23": ["refused"],
  P0: ["refused"],
  // Authentication, missing databases, schemas, tables, privileges and features.
  "28": ["fail", "broken"],
  "3D": ["fail", "broken"],
  "3F": ["fail", "broken"],
  "42": ["fail", "broken"],
  "0A": ["fail", "broken"],
};

/** Matches the index that prevents using an idempotency key twice. On Citus, the name ends with the shard's number. */
const keyIndex = /^deletions_by_key(?:_\d+)?$/;

/** Matches PostgreSQL's SQLSTATE classes. Applications may define SQLSTATEs in other classes. */
const classes = /^(?:0[01238ABFLPZ9]|10|2[0-8BDF]|3[489BDF]|4[024]|5[3-578]|72|F0|HV|P0|XX)/;

/**
 * Returns the verdict on a statement's error. Without a SQLSTATE, the connection failed, perhaps after the commit.
 *
 * A conflict in the idempotency key index is repeated, because another transaction has used the key at the same time,
 * and the next attempt finds its record. A class that PostgreSQL does not use means that a trigger protects a plant.
 */
export function verdictOn(fault: unknown): Verdict {
  const code = sqlStateOf(fault);
  if (code === undefined || !(fault instanceof Error)) return "unknown";
  if ("constraint" in fault && keyIndex.test(String(fault.constraint))) return "retry";
  const [verdict, within = verdict] = faultTable[code] ?? faultTable[code.slice(0, 2)] ?? [];
  // Only for errors within a statement, the server adds a context. Citus adds one for each error of a worker.
  const isWithin = "where" in fault && typeof fault.where === "string" && !ownContext.test(fault.where);
  if (!isWithin) return verdict ?? "unknown";
  return within ?? (classes.test(code) ? "broken" : "refused");
}

const ownContext = /^while executing command on \S+$/;
