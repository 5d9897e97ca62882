import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Outcomes, type PendingDelete, tellOutcomes } from "../delete-queue.ts";
import { outcomeUnknown, plantKept, storeAway } from "../errors.ts";
import { type Attempt, attemptBatch, findRefused } from "./attempt-batch.ts";
import { type DeleteBatch, type PlantFate, toDeleteBatch } from "./delete-batch.ts";
import { isRaisedWithin, type Verdict, verdictOn } from "./fault-table.ts";
import { inDoubt, type LockedDelete } from "./locked-deletes.ts";
import type { Session } from "./session.ts";
import { ToldByKey } from "./told-by-key.ts";

/**
 * How long a batch may take, in milliseconds from when it is first sent: with all repetitions, everything it is divided
 * into, and its plants that are locked. Long enough for a restart or failover of a few seconds.
 */
export const toldWithinMs = 10_000;

// In milliseconds. The victim of a deadlock is retried almost at once, and a server that is starting is not flooded.
const backoffMsFirst = 5;
const backoffMsMax = 1_000;

type ServerState = "refusing" | "away" | "busy" | "well";

/** The error for a batch that was given up. */
export class BatchGivenUp extends Error {
  /** The error for its callers. */
  readonly reason: Error;
  /** The last fault. */
  readonly fault: unknown;
  /**
   * The state of the server by that fault: `refusing` everything, `away` or short of something, `busy` with other
   * transactions, or `well`, because only these plants or callers are concerned.
   */
  readonly server: ServerState;

  constructor(reason: Error, fault: unknown, server: ServerState) {
    super("a batch of deletions was given up");
    this.reason = reason;
    this.fault = fault;
    this.server = server;
  }
}

function stateAfter(verdict: Verdict): ServerState {
  if (verdict === "give-up") return "refusing";
  if (verdict === "divide") return "well";
  return verdict === "repeat" || verdict === "skip" ? "busy" : "away";
}

/** Options of {@link runBatch}. */
export interface RunBatchOptions {
  /**
   * Takes a deletion whose plant another transaction keeps locked, or whose idempotency key another deletion of the
   * batch has. The deletion must not be begun again, or answered, before the batch has ended: if the batch is given up,
   * all of its callers are told so.
   */
  readonly setAside: (pending: LockedDelete) => void;
  /** The token of an earlier batch that may have deleted these plants. By default none has. */
  readonly token?: string | undefined;
  /** Whether no lock is waited for, even in the first attempt. By default only once a lock was waited for in vain. */
  readonly skipsLocked?: boolean;
  /** Whether a fault has come before, so that callers may be gone, and keys may have been used. Default false. */
  readonly afterFault?: boolean;
  /** The deletions whose callers were answered by their key already. By default none. */
  readonly told?: ToldByKey;
}

/**
 * Deletes a batch on a session, and repeats it as long as the fault table says that this may help, a caller waits for
 * it, and the session has time. Deletions that are given up meanwhile are rejected, and left out of the next attempt. So
 * are those of plants that the server keeps or others have locked: no caller waits for the plant of another.
 *
 * @throws BatchGivenUp
 */
export async function runBatch(
  session: Session,
  pending: readonly PendingDelete[],
  options: RunBatchOptions,
): Promise<Outcomes> {
  const { token = randomUUID(), told = new ToldByKey() } = options;
  let { afterFault = false, skipsLocked = false } = options;
  let batch = toDeleteBatch(token, pending, { afterFault, told });
  // Invariant: true from the first fault that may have followed a commit, to the end. A later fault that did nothing
  // says nothing about the earlier attempt.
  let mayBeDone = options.token !== undefined;
  for (let tries = 0; ; tries++) {
    // All callers of a half may have been told, or be gone, before it begins.
    if (batch.firstOf.size === 0) return pending.map(() => undefined);
    const looksFirst: boolean = afterFault;
    const attempt: Attempt = await attemptBatch(session, batch, pending, { mayBeDone, skipsLocked, looksFirst, told });
    if (attempt.kind === "told") {
      batch = toDeleteBatch(token, pending, { afterFault: true, told });
      continue;
    }
    if (attempt.kind !== "failed") return outcomesOf(batch, pending, attempt, mayBeDone, { ...options, told });
    const { fault } = attempt;
    let verdict = skipsLocked ? verdictBehindLocks(attempt.verdict, fault) : attempt.verdict;
    // An earlier use of a key decides first, whatever becomes of the plant now.
    if (verdict === "divide" && batch.keyed.length > 0 && !looksFirst) verdict = "repeat";
    afterFault = true;
    ({ mayBeDone } = attempt);
    if (verdict === "reconnect" || verdict === "look") session.discard();
    if (verdict === "divide") {
      const divided = { ...options, afterFault, skipsLocked, told };
      return mayBeDone
        ? await divideInDoubt(session, batch, pending, fault, { ...divided, token })
        : await divide(session, pending, fault, divided);
    }
    const reason = reasonOf(fault, mayBeDone);
    if (verdict !== "give-up") await sleep(Math.max(0, Math.min(backoffMs(tries), session.leftMs)));
    if (verdict === "give-up" || !session.hasTime) throw new BatchGivenUp(reason, fault, stateAfter(verdict));
    skipsLocked ||= verdict === "skip";
    batch = toDeleteBatch(token, pending, { afterFault: true, told });
    // That all callers are gone says nothing about the server.
    if (batch.firstOf.size === 0) throw new BatchGivenUp(reason, fault, "well");
  }
}

function reasonOf(fault: unknown, mayBeDone: boolean): Error {
  return mayBeDone ? outcomeUnknown(fault) : storeAway(fault);
}

/**
 * Returns the verdict on an attempt that did not wait for plants. If it met a lock nevertheless, then either the whole
 * table is locked, which has to be waited for, or something that goes with a plant, such as a row of another table.
 */
function verdictBehindLocks(verdict: Verdict, fault: unknown): Verdict {
  if (verdict !== "skip") return verdict;
  return isRaisedWithin(fault) ? "divide" : "repeat";
}

function outcomesOf(
  { firstOf, postponed, token }: DeleteBatch,
  pending: readonly PendingDelete[],
  attempt: Extract<Attempt, { kind: "done" | "all-deleted" }>,
  mayBeDone: boolean,
  { setAside, told }: RunBatchOptions & { readonly told: ToldByKey },
): Outcomes {
  // Of several callers for one plant, the first has deleted it.
  const isFirst = (one: PendingDelete): boolean => firstOf.get(one.id) === one;
  if (attempt.kind === "all-deleted" && postponed.size === 0) return pending.map(isFirst);
  return pending.map((one) => {
    if (told.has(one)) return undefined;
    const fate = attempt.kind === "all-deleted" ? "deleted" : attempt.fates.get(one.id);
    const first = firstOf.get(one.id);
    // If the first was told by its key, its plant may be there for the next caller.
    if (postponed.has(one) || (first !== undefined && told.has(first))) setAside(one);
    else if (fate === "locked") setAside(mayBeDone && isFirst(one) ? inDoubt(one, token) : one);
    else if (fate === "kept") one.reject(plantKept(one.id));
    else return fate === "deleted" && isFirst(one);
    return undefined;
  });
}

interface DivideOptions extends RunBatchOptions {
  readonly told: ToldByKey;
}

/**
 * Finds the part of a batch that the server refuses, of which this attempt has done nothing: a plant that must not be
 * deleted does not protect the others.
 */
async function divide(
  session: Session,
  pending: readonly PendingDelete[],
  fault: unknown,
  options: DivideOptions,
): Promise<Outcomes> {
  const [only] = pending;
  if (only !== undefined && pending.length === 1) return [await endRefused(session, only, fault, options)];
  const middle = Math.floor(pending.length / 2);
  const outcomes: (boolean | undefined)[] = [];
  for (const half of [pending.slice(0, middle), pending.slice(middle)]) {
    // Other batches are waiting: there is no time left for this half.
    if (!session.hasTime) outcomes.push(...refuse(half, reasonOf(fault, options.token !== undefined)));
    else outcomes.push(...(await runHalf(session, half, options)));
  }
  return outcomes;
}

/**
 * Divides a batch that may be done. It can only have recorded the deletion of the first caller for each plant; for the
 * other callers nothing was done, and they begin anew.
 */
async function divideInDoubt(
  session: Session,
  { firstOf }: DeleteBatch,
  pending: readonly PendingDelete[],
  fault: unknown,
  options: DivideOptions,
): Promise<Outcomes> {
  const isFirst = (one: PendingDelete): boolean => firstOf.get(one.id) === one;
  const outcomes = (await divide(session, pending.filter(isFirst), fault, options)).values();
  return pending.map((one) => {
    if (isFirst(one)) return outcomes.next().value;
    if (!options.told.has(one)) options.setAside(one);
    return undefined;
  });
}

/** Ends a deletion that the server refuses even alone. An earlier attempt at it may have succeeded. */
async function endRefused(
  session: Session,
  only: PendingDelete,
  fault: unknown,
  { setAside, token, told }: DivideOptions,
): Promise<boolean | undefined> {
  let fate: PlantFate | undefined = verdictOn(fault) === "skip" ? "locked" : "kept";
  if (fate === "kept" && token !== undefined) fate = await fateOfRefused(session, only, token, told);
  if (fate === "locked") setAside(token === undefined ? only : inDoubt(only, token));
  if (fate === "kept") only.reject(plantKept(only.id, fault));
  return fate === "locked" || fate === "kept" ? undefined : fate === "deleted";
}

async function fateOfRefused(
  session: Session,
  only: PendingDelete,
  token: string,
  told: ToldByKey,
): Promise<PlantFate | undefined> {
  try {
    const batch = toDeleteBatch(token, [only]);
    const fate = (await findRefused(session, batch)).get(only.id);
    if (fate === undefined && batch.keyed.length > 0) await told.tell(session, batch.keyed);
    return fate;
  } catch (fault) {
    const verdict = verdictOn(fault);
    if (verdict === "skip") return "locked";
    session.discard();
    throw new BatchGivenUp(outcomeUnknown(fault), fault, stateAfter(verdict));
  }
}

/** Runs a half and answers its callers at once: the end of the other half does not undo what was done for this one. */
async function runHalf(session: Session, half: readonly PendingDelete[], options: DivideOptions): Promise<Outcomes> {
  try {
    const outcomes = await runBatch(session, half, options);
    tellOutcomes(half, outcomes);
    return outcomes;
  } catch (fault) {
    if (!(fault instanceof BatchGivenUp) || fault.server === "refusing" || fault.server === "away") throw fault;
    return refuse(half, fault.reason);
  }
}

function refuse(half: readonly PendingDelete[], reason: Error): Outcomes {
  half.forEach((pending) => pending.reject(reason));
  return half.map(() => undefined);
}

/**
 * Returns how long to wait before the next attempt, in milliseconds. Full jitter: replicas that were refused together
 * do not come back together.
 */
export function backoffMs(tries: number): number {
  return Math.random() * Math.min(backoffMsMax, backoffMsFirst * 2 ** tries);
}
