/**
 * What a fault means for the statement that failed.
 *
 * - `repeat`: it did nothing because of concurrent transactions on the same rows, and is run again.
 * - `skip`: it did nothing because it waited too long, probably for a lock, and is run again without the plants that are
 *   locked.
 * - `wait`: it did nothing because the server lacks a resource, and is run again.
 * - `reconnect`: it did nothing, and this connection is of no use.
 * - `look`: it may have been committed. It is run again on a new connection; then the deletion record says which plants
 *   it deleted, the first time or now.
 * - `divide`: it did nothing because the server refuses part of it. Its halves are run, so that only what is refused
 *   fails.
 * - `give-up`: it did nothing, and would do nothing again.
 */
export type Verdict = "repeat" | "skip" | "wait" | "reconnect" | "look" | "divide" | "give-up";

/**
 * One row: a SQLSTATE, or the first two characters that name its class
 * (postgresql.org/docs/current/errcodes-appendix.html).
 */
export interface FaultRow {
  readonly sqlState: string;
  readonly verdict: Verdict;
  readonly why: string;
}

/** The table of faults. A code takes precedence over its class; what has no row is treated as `look`. */
export const faultTable: readonly FaultRow[] = [
  { sqlState: "40001", verdict: "repeat", why: "could not be serialised; rolled back" },
  { sqlState: "40P01", verdict: "repeat", why: "victim of a deadlock; rolled back" },
  { sqlState: "40003", verdict: "look", why: "the server does not know whether it was completed" },
  { sqlState: "55P03", verdict: "skip", why: "lock_timeout passed" },
  { sqlState: "57014", verdict: "skip", why: "cancelled, as by statement_timeout" },
  { sqlState: "53", verdict: "wait", why: "the server has no memory, disk or other resource left" },
  { sqlState: "53300", verdict: "reconnect", why: "too many connections" },
  { sqlState: "57P03", verdict: "reconnect", why: "the server is starting, stopping or recovering" },
  {
    sqlState: "25006",
    verdict: "reconnect",
    why: "the server is read-only: a standby, or a primary that was replaced",
  },
  { sqlState: "57P01", verdict: "look", why: "the server is being shut down, maybe after the commit" },
  { sqlState: "57P02", verdict: "look", why: "another process of the server crashed" },
  { sqlState: "57P05", verdict: "look", why: "the idle connection was ended" },
  { sqlState: "08", verdict: "look", why: "the connection failed" },
  { sqlState: "58", verdict: "look", why: "an error of the system that the server runs on" },
  { sqlState: "XX", verdict: "look", why: "an internal error of the server" },
  { sqlState: "22", verdict: "divide", why: "the server does not take a value, or a trigger drops the record" },
  { sqlState: "23", verdict: "divide", why: "a constraint would not hold: another table refers to a plant" },
  { sqlState: "P0", verdict: "divide", why: "a trigger refuses" },
  { sqlState: "28", verdict: "give-up", why: "the server does not let this user in" },
  { sqlState: "3D", verdict: "give-up", why: "there is no such database" },
  { sqlState: "3F", verdict: "give-up", why: "there is no such schema" },
  { sqlState: "42", verdict: "give-up", why: "a table is missing, or not for this user" },
  { sqlState: "0A", verdict: "give-up", why: "the server cannot do this" },
];

/** The index of `deletions` that lets no idempotency key be used twice. On Citus the number of the shard follows. */
const keyIndex = /^deletions_by_key(?:_\d+)?$/;

const verdicts: ReadonlyMap<string, Verdict> = new Map(faultTable.map((row) => [row.sqlState, row.verdict]));

/**
 * Returns the verdict on the error of a statement. An error without a SQLSTATE is one of the connection, and says
 * nothing about the statement.
 *
 * An idempotency key that another transaction has used at the same time refuses no plant: its record is there now.
 *
 * A trigger may raise any SQLSTATE, even one that nobody has heard of. If the table knows none, or has the whole store
 * give up, then a trigger is refusing a plant.
 */
export function verdictOn(fault: unknown): Verdict {
  const code = sqlStateOf(fault);
  if (code === undefined) return "look";
  if (isKeyConflict(fault)) return "repeat";
  const verdict = verdicts.get(code) ?? verdicts.get(code.slice(0, 2));
  if ((verdict === undefined || verdict === "give-up") && isRaisedWithin(fault)) return "divide";
  return verdict ?? "look";
}

function isKeyConflict(fault: unknown): boolean {
  return fault instanceof Error && "constraint" in fault && keyIndex.test(String(fault.constraint));
}

/**
 * Whether an error came up within the statement, in a trigger, a foreign key, or at a certain row: then the server says
 * where. It does not for an error of the statement itself.
 */
export function isRaisedWithin(fault: unknown): boolean {
  return fault instanceof Error && "where" in fault && typeof fault.where === "string" && !onCitus.test(fault.where);
}

// What Citus says of an error of our own statement: the worker, or its place in our function. Where the function of a
// trigger stands before ours, it is the trigger's.
const onCitus =
  /^while executing command on \S+$|^(?:SQL statement "(?:(?!PL\/pgSQL function )[^])*"\n)?PL\/pgSQL function \S*plantstore_delete\(/;

/** Returns the SQLSTATE of an error; `undefined` if it did not come from the server. */
export function sqlStateOf(fault: unknown): string | undefined {
  if (!(fault instanceof Error) || !("code" in fault) || !("severity" in fault)) return undefined;
  return typeof fault.code === "string" ? fault.code : undefined;
}
