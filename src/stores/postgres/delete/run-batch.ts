import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Outcomes, PendingDelete } from "../../delete-queue.ts";
import { outcomeUnknown, plantProtected, storeUnavailable } from "../../../service/index.ts";
import { backoffMs } from "../server/backoff.ts";
import type { Session } from "../server/session.ts";
import { AnsweredByKey } from "./answered-by-key.ts";
import { type Attempt, attemptBatch, findRefused } from "./attempt-batch.ts";
import { type DeleteBatch, toDeleteBatch } from "./delete-batch.ts";
import { consequences, nextStep, type ServerState, verdictOn } from "./fault-table.ts";
import { inDoubt, type LockedDelete } from "./locked-deletes.ts";
import type { Placement, PlantFate } from "./placement.ts";

/**
 * How long a batch may take, in milliseconds from when it is first sent: with all repetitions, everything it is divided
 * into, and its plants that are locked. Long enough for a restart or failover of a few seconds.
 */
export const batchTimeoutMs = 10_000;

/** The error for a batch that was given up. */
export class BatchGivenUp extends Error {
  /** The error for its callers. */
  readonly reason: Error;
  /** The last fault. */
  readonly fault: unknown;
  /** The state of the server by that fault. */
  readonly server: ServerState;

  constructor(reason: Error, fault: unknown, server: ServerState) {
    super("a batch of deletions failed");
    this.reason = reason;
    this.fault = fault;
    this.server = server;
  }
}

/** Options of {@link runBatch}. */
export interface RunBatchOptions {
  /**
   * Takes a deletion whose plant another transaction keeps locked, or whose idempotency key another deletion of the
   * batch has. The deletion must not be begun again, or answered, before the batch has ended: if the batch is given up,
   * all of its callers are told so.
   */
  readonly setAside: (pending: LockedDelete) => void;
  /** Where the plants of the batch are. */
  readonly placement: Placement;
  /** The token of an earlier batch that may have deleted these plants. By default none has. */
  readonly token?: string | undefined;
  /** Whether no lock is waited for, even in the first attempt. By default only once a lock was waited for in vain. */
  readonly skipsLocked?: boolean;
  /** Whether a fault has come before, so that callers may have given up, and keys may be used. Default false. */
  readonly afterFault?: boolean;
  /** The deletions whose callers were answered by their key already. By default none. */
  readonly answered?: AnsweredByKey;
}

/** Whether deletions have removed their plants. One without an outcome is answered, or set aside. */
type OutcomeOf = Map<PendingDelete, boolean>;

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
  const { answered = new AnsweredByKey() } = options;
  const outcomeOf = await runPart(session, pending, { ...options, answered });
  return pending.map((one) => outcomeOf.get(one));
}

interface PartOptions extends RunBatchOptions {
  readonly answered: AnsweredByKey;
}

/** Runs a batch, or a part of one that was divided. */
async function runPart(session: Session, pending: readonly PendingDelete[], options: PartOptions): Promise<OutcomeOf> {
  const { token = randomUUID(), placement, answered } = options;
  let { afterFault = false, skipsLocked = false } = options;
  // Invariant: true from the first fault that may have followed a commit, to the end.
  let mayBeDone = options.token !== undefined;
  let allGaveUp: BatchGivenUp | undefined;
  for (let tries = 0; ; tries++) {
    const batch = toDeleteBatch(token, pending, afterFault, answered);
    if (batch.firstOf.size === 0) {
      if (allGaveUp !== undefined) throw allGaveUp;
      return new Map();
    }
    const mode = { placement, mayBeDone, skipsLocked, looksFirst: afterFault, answered };
    const attempt = await attemptBatch(session, batch, pending, mode);
    allGaveUp = undefined;
    if (attempt.kind === "answered") continue;
    if (attempt.kind === "done") return outcomesOf(batch, pending, attempt, mayBeDone, options);
    const { verdict, fault } = attempt;
    const { reconnects, server } = consequences[verdict];
    const step = nextStep(verdict, fault, skipsLocked, batch.keyed.length > 0 && !afterFault);
    ({ mayBeDone } = attempt);
    afterFault = true;
    skipsLocked ||= step === "skip-locked";
    if (reconnects) session.discard();
    if (step === "divide") {
      const inDoubtBy = mayBeDone ? token : undefined;
      return await divide(session, batch, pending, fault, { ...options, token: inDoubtBy, afterFault, skipsLocked });
    }
    if (step !== "end") await sleep(Math.max(0, Math.min(backoffMs(tries), session.leftMs)));
    const reason = reasonOf(fault, mayBeDone);
    // No test can tell: what is thrown here leaves nobody who asks for what is kept below.
    if (step === "end" || !session.hasTime) throw new BatchGivenUp(reason, fault, server);
    // That no caller waits any more says nothing about the server.
    allGaveUp = new BatchGivenUp(reason, fault, "well");
  }
}

function reasonOf(fault: unknown, mayBeDone: boolean): Error {
  return mayBeDone ? outcomeUnknown(fault) : storeUnavailable(fault);
}

function outcomesOf(
  { firstOf, postponed, token }: DeleteBatch,
  pending: readonly PendingDelete[],
  { fates, there }: Extract<Attempt, { kind: "done" }>,
  mayBeDone: boolean,
  { setAside, answered }: PartOptions,
): OutcomeOf {
  const outcomeOf: OutcomeOf = new Map();
  for (const one of pending) {
    if (answered.has(one)) continue;
    const first = firstOf.get(one.id);
    const fate = fates.get(one.id);
    // The key of a postponed deletion is unused, since the other deletion with it has found no plant. If the first
    // caller for a plant was answered by its key, the plant may be there for the next one.
    const beginsAnew = postponed.has(one)
      ? there.has(one.id)
      : fate === "used" || (first !== undefined && answered.has(first));
    if (beginsAnew) setAside(one);
    else if (fate === "locked") setAside(mayBeDone && first === one ? inDoubt(one, token) : one);
    else if (fate === "kept") one.reject(plantProtected(one.id));
    // Of several callers for one plant, the first has deleted it.
    else outcomeOf.set(one, fate === "deleted" && first === one);
  }
  return outcomeOf;
}

/**
 * Finds the part of a batch that the server refuses: a plant that must not be deleted does not protect the others.
 *
 * @param options - `token` only if the batch may be done
 */
async function divide(
  session: Session,
  { firstOf }: DeleteBatch,
  pending: readonly PendingDelete[],
  fault: unknown,
  options: PartOptions,
): Promise<OutcomeOf> {
  const { token, answered, setAside } = options;
  // An earlier attempt can only have recorded the deletion of the first caller for each plant. For the others nothing
  // was done, and they begin anew.
  const mayBeOf = (one: PendingDelete): boolean => token === undefined || firstOf.get(one.id) === one;
  const parts = pending.filter(mayBeOf);
  for (const one of pending) if (!mayBeOf(one) && !answered.has(one)) setAside(one);
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return await endRefused(session, only, fault, options);
  const middle = Math.floor(parts.length / 2);
  const outcomeOf: OutcomeOf = new Map();
  for (const half of [parts.slice(0, middle), parts.slice(middle)]) {
    // Other batches are waiting: there is no time left for this half.
    if (!session.hasTime) rejectAll(half, reasonOf(fault, token !== undefined));
    else for (const [one, isDeleted] of await runHalf(session, half, options)) outcomeOf.set(one, isDeleted);
  }
  return outcomeOf;
}

/** Runs a half and answers its callers at once: the end of the other half does not undo what was done for this one. */
async function runHalf(session: Session, half: readonly PendingDelete[], options: PartOptions): Promise<OutcomeOf> {
  try {
    const outcomeOf = await runPart(session, half, options);
    for (const [one, isDeleted] of outcomeOf) one.resolve(isDeleted);
    return outcomeOf;
  } catch (fault) {
    if (!(fault instanceof BatchGivenUp) || fault.server === "refusing" || fault.server === "away") throw fault;
    rejectAll(half, fault.reason);
    return new Map();
  }
}

function rejectAll(half: readonly PendingDelete[], reason: Error): void {
  for (const pending of half) pending.reject(reason);
}

/** Ends a deletion that the server refuses even alone. An earlier attempt at it may have succeeded. */
async function endRefused(
  session: Session,
  only: PendingDelete,
  fault: unknown,
  options: PartOptions,
): Promise<OutcomeOf> {
  const { token, setAside, answered } = options;
  let fate: PlantFate | undefined = verdictOn(fault) === "skip" ? "locked" : "kept";
  if (fate === "kept" && token !== undefined) fate = await fateOfRefused(session, only, token, options);
  if (fate === "locked") setAside(token === undefined ? only : inDoubt(only, token));
  else if (fate === "kept") only.reject(plantProtected(only.id, fault));
  else if (!answered.has(only)) return new Map([[only, fate === "deleted"]]);
  return new Map();
}

async function fateOfRefused(
  session: Session,
  only: PendingDelete,
  token: string,
  { placement, answered }: PartOptions,
): Promise<PlantFate | undefined> {
  try {
    const batch = toDeleteBatch(token, [only]);
    const fate = await findRefused(session, placement, batch);
    if (fate === undefined) await answered.answer(session, placement, batch.keyed);
    return fate;
  } catch (fault) {
    const verdict = verdictOn(fault);
    if (verdict === "skip") return "locked";
    session.discard();
    throw new BatchGivenUp(outcomeUnknown(fault), fault, consequences[verdict].server);
  }
}
