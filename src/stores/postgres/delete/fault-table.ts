import type { StoreProblem } from "../../contract/store-health.ts";
import { StoreOpenError } from "../../contract/store-options.ts";
import { isWithinStatement, sqlStateOf } from "../server/connect.ts";

/**
 * What an error means for the failed statement. Only `unknown` statements may have been committed.
 *
 * - `retry`: Repeated on a new connection, because of other transactions, a missing resource or a failover.
 * - `unknown`: Repeated, too. The deletion records then show which plants were deleted.
 * - `refused`: The database protects a plant. The batch is halved, so that only the protected plants fail.
 * - `broken`: A trigger or an index has failed, but not to protect a plant. Also halved. A later call may succeed.
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
export const faultTable: ReadonlyMap<string, readonly [verdict: Verdict, within?: Verdict]> = new Map([
  // Serialization failures and deadlocks are rolled back.
  ...codes("40001 40P01", "retry"),
  // The server lacks resources, or is starting, stopping, recovering or read-only, or a trigger's other server is.
  ...codes("53 57P03 25006", "retry", "broken"),
  // A trigger has changed a row that the statement deletes. A record exceeds a limit, such as that of an index.
  ...codes("27 54", "broken"),
  // A timeout for a lock.
  ...codes("55P03", "retry", "locked"),
  // A cancelled statement. A pooler may send its error as the response to the next statement.
  ...codes("57014", "unknown", "locked"),
  // Timeouts of the transaction, perhaps at its commit.
  ...codes("25P03 25P04", "unknown", "retry"),
  // The connection, the operating system or an internal error, or such an error of a trigger, which is rolled back.
  ...codes("08 58 XX", "unknown", "broken"),
  // The server does not know the outcome, or is shutting down.
  ...codes("40003 57P01 57P02 57P05", "unknown"),
  // A rejected value or a dropped record, a violated constraint, an error that a trigger has raised.
  ...codes("22 23 P0", "refused"),
  // Authentication, missing databases, schemas, tables, privileges and features.
  ...codes("28 3D 3F 42 0A", "fail", "broken"),
]);

function codes(list: string, ...verdicts: [Verdict, Verdict?]): [string, [Verdict, Verdict?]][] {
  return list.split(" ").map((code) => [code, verdicts]);
}

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
  const [verdict, within = verdict] = faultTable.get(code) ?? faultTable.get(code.slice(0, 2)) ?? [];
  if (!isWithinStatement(fault)) return verdict ?? "unknown";
  return within ?? (classes.test(code) ? "broken" : "refused");
}

/** A server's problem. It may be brief, like a failover, unless an operator must act, as on a missing privilege. */
interface ServerProblem extends StoreProblem {
  readonly mayBeBrief: boolean;
}

/**
 * Returns the problem for a server or connection error. The problem is always temporary, because servers are restarted,
 * replaced and migrated while clients run.
 */
export function problemOf(fault: unknown): ServerProblem {
  const mayBeBrief = !(fault instanceof StoreOpenError) && verdictOn(fault) !== "fail";
  return { text: faultTextOf(fault), isTemporary: true, mayBeBrief };
}

/** Returns the error of a command that fails because of a server, for an operator. */
export function cannotUse(serverName: string, cause: unknown): StoreOpenError {
  return new StoreOpenError(`cannot use ${serverName}: ${problemOf(cause).text}`, { cause });
}

// Adds the reason to the server's message, which lacks the reason, and may be translated.
function faultTextOf(fault: unknown): string {
  // If a host name has several addresses, each address has its own error, and there is no common message.
  if (fault instanceof AggregateError) return fault.errors.map(faultTextOf).join("; ");
  if (!(fault instanceof Error)) return String(fault);
  const state = sqlStateOf(fault);
  if (state === "55P03") return `another transaction holds a lock on a table or its rows: ${fault.message}`;
  if (state === "57014") return `a statement was cancelled, probably because it took too long: ${fault.message}`;
  return fault.message;
}
