import { ownOnCitus } from "../citus/error-place.ts";
import { sqlStateOf } from "../server/sql-state.ts";

/**
 * The meaning of a fault for the statement that failed.
 *
 * - `repeat`: it did nothing because of concurrent transactions on the same rows, and is run again.
 * - `skip`: it did nothing because it waited too long, probably for a lock, and is run again without the plants that
 *   are locked.
 * - `wait`: it did nothing because the server lacks a resource, and is run again.
 * - `reconnect`: it did nothing, and is run again on a new connection.
 * - `look`: it may have been committed. It is run again on a new connection; then the deletion record says which plants
 *   it deleted, the first time or now.
 * - `divide`: it did nothing because the server refuses part of it. Its halves are run, so that only the refused plants
 *   fail.
 * - `give-up`: it did nothing, and would do nothing again.
 */
export type Verdict = "repeat" | "skip" | "wait" | "reconnect" | "look" | "divide" | "give-up";

/**
 * The state of the server by a fault: `refusing` everything, `away` or short of something, `busy` with other
 * transactions, or `well`, because only these plants are concerned.
 */
export type ServerState = "refusing" | "away" | "busy" | "well";

/** What follows from a verdict. */
interface Consequence {
  /** The next step of a batch. */
  readonly next: Step;
  /** Whether the next attempt is made on another connection. */
  readonly reconnects: boolean;
  /** What the fault says of the server if the batch is given up. */
  readonly server: ServerState;
}

/**
 * The next step of a batch: another attempt, one that leaves locked plants alone as do all further ones, its halves, or
 * the end.
 */
export type Step = "again" | "skip-locked" | "divide" | "end";

/**
 * What each verdict means for a batch. Whether the batch is in doubt changes none of that: a fault that did nothing says
 * nothing about an earlier attempt, so a batch stays in doubt from its first `look` to its end.
 *
 * Two steps depend on more than that, see {@link nextStep}.
 */
export const consequences: Readonly<Record<Verdict, Consequence>> = {
  repeat: { next: "again", reconnects: false, server: "busy" },
  skip: { next: "skip-locked", reconnects: false, server: "busy" },
  wait: { next: "again", reconnects: false, server: "away" },
  reconnect: { next: "again", reconnects: true, server: "away" },
  look: { next: "again", reconnects: true, server: "away" },
  divide: { next: "divide", reconnects: false, server: "well" },
  "give-up": { next: "end", reconnects: false, server: "refusing" },
};

/**
 * Returns the next step of a batch after a fault.
 *
 * An attempt that leaves locked plants alone may meet a lock nevertheless. Then either the whole table is locked, which
 * has to be waited for, or something that goes with a plant, such as a row of another table, which has to be found.
 *
 * @param hasUnreadKeys - whether idempotency keys were not looked up yet: an earlier use of a key decides first,
 * whatever becomes of the plant now
 */
export function nextStep(verdict: Verdict, fault: unknown, skipsLocked: boolean, hasUnreadKeys: boolean): Step {
  const meetsLockOfPlant = skipsLocked && verdict === "skip" && isRaisedWithin(fault);
  const step = meetsLockOfPlant ? "divide" : consequences[verdict].next;
  return step === "divide" && hasUnreadKeys ? "again" : step;
}

/**
 * One row: a SQLSTATE, or the first two characters that name its class
 * (postgresql.org/docs/current/errcodes-appendix.html).
 */
export interface FaultRow {
  readonly sqlState: string;
  readonly verdict: Verdict;
  readonly why: string;
}

/** The table of faults. A code takes precedence over its class; a code without a row is treated as `look`. */
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

/** The name of the index that lets no idempotency key be used twice. On Citus the number of the shard follows. */
const keyIndex = /^deletions_by_key(?:_\d+)?$/;

const verdicts: ReadonlyMap<string, Verdict> = new Map(faultTable.map((row) => [row.sqlState, row.verdict]));

/**
 * Returns the verdict on the error of a statement. An error without a SQLSTATE is one of the connection, and says
 * nothing about the statement.
 *
 * If another transaction has used an idempotency key at the same time, no plant is refused: the record of the key is
 * there now.
 *
 * A trigger may raise any SQLSTATE, even an unknown one. If a fault raised within the statement has no row, or one that
 * would have the whole store give up, a trigger refuses a plant.
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
 * Returns whether an error was raised within the statement: in a trigger, by a foreign key, or at a certain row. The
 * server then says where, which it does not for an error of the statement itself.
 */
function isRaisedWithin(fault: unknown): boolean {
  return fault instanceof Error && "where" in fault && typeof fault.where === "string" && !ownOnCitus.test(fault.where);
}
