import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Outcomes, PendingDelete } from "../../delete-queue.ts";
import { outcomeUnknown, plantProtected, storeUnavailable } from "../../../service/index.ts";
import { backoffMs } from "../server/backoff.ts";
import type { Session } from "../server/session.ts";
import { SettledByKey } from "./settled-by-key.ts";
import { type Attempt, attemptBatch, findRefused } from "./attempt-batch.ts";
import { type PreparedBatch, prepareBatch } from "./prepared-batch.ts";
import { consequences, nextStep, type ServerState, verdictOn } from "./fault-table.ts";
import { markInDoubt, type LockedDelete } from "./locked-deletes.ts";
import type { Placement, PlantFate } from "./placement.ts";

/** The timeout of a batch with all its retries and parts, in milliseconds: longer than a restart or failover takes. */
export const batchTimeoutMs = 10_000;

/** The error for a batch that failed. */
export class BatchFailure extends Error {
  /** The error that the callers get. */
  readonly reason: Error;
  /** The last error. */
  readonly fault: unknown;
  /** The state of the server according to that error. */
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
   * Receives a deletion whose plant another transaction has locked, or whose outcome depends on another deletion of the
   * batch, with the same plant or idempotency key. The deletion must not be retried or settled before the batch is
   * settled: if the batch fails, all of its deletions fail.
   */
  readonly defer: (pending: LockedDelete) => void;
  /** The placement of the plants of the batch. */
  readonly placement: Placement;
  /** The token of an earlier batch that may have deleted these plants, if any. */
  readonly token?: string | undefined;
  /**
   * Whether the first attempt is already careful: it drops cancelled calls, looks up keys first, and skips locked plants.
   * By default, only attempts after anything unusual and those with a `token` are.
   */
  readonly isCareful?: boolean;
  /** The deletions that are already settled by their key. By default none. */
  readonly settled?: SettledByKey;
}

/** Whether each deletion has removed its plant. A deletion without an outcome is settled or deferred. */
type OutcomeOf = Map<PendingDelete, boolean>;

/**
 * Deletes a batch on a session. The first attempt is a single statement. A batch that fails is run again with the same
 * token by careful attempts, while the fault table allows it, a caller waits, and the session has time. If plants remain
 * after the first attempt, careful attempts follow only for these. Deletions that are cancelled meanwhile or whose plants are protected are rejected, and those of locked plants
 * are deferred, so that they do not delay other callers.
 *
 * @throws BatchFailure
 */
export async function runBatch(
  session: Session,
  pending: readonly PendingDelete[],
  options: RunBatchOptions,
): Promise<Outcomes> {
  const { settled = new SettledByKey() } = options;
  const outcomeOf = await runPart(session, pending, { ...options, settled });
  return pending.map((one) => outcomeOf.get(one));
}

interface PartOptions extends RunBatchOptions {
  readonly settled: SettledByKey;
}

/** Runs a batch, or a part of a batch that was split. */
async function runPart(session: Session, pending: readonly PendingDelete[], options: PartOptions): Promise<OutcomeOf> {
  const { token = randomUUID(), placement, settled } = options;
  // Invariant: stays true from the first attempt that may have been committed.
  let mayBeDone = options.token !== undefined;
  let isCareful = mayBeDone || options.isCareful === true;
  let hasTimedOut = options.isCareful === true;
  let lastFailure: BatchFailure | undefined;
  for (let attempts = 0; ; attempts++) {
    const batch = prepareBatch(token, pending, isCareful, settled);
    if (batch.firstOf.size === 0) {
      if (lastFailure !== undefined) throw lastFailure;
      return new Map();
    }
    const attempt = await attemptBatch(session, batch, { placement, settled, isCareful, mayBeDone });
    lastFailure = undefined;
    if (attempt.kind === "settled") continue;
    if (attempt.kind === "done") {
      const { remaining } = attempt;
      const outcomeOf = outcomesOf(batch, pending, attempt, mayBeDone, options);
      if (remaining.size === 0) return outcomeOf;
      // These outcomes are final, even if the rest fails.
      for (const [one, isDeleted] of outcomeOf) one.resolve(isDeleted);
      const rest = pending.filter((one) => remaining.has(one.id) && !settled.has(one) && !batch.postponed.has(one));
      return new Map([...outcomeOf, ...(await settlePart(session, rest, { ...options, isCareful: true }))]);
    }
    const hasUnreadKeys = batch.keyed.length > 0 && !isCareful;
    isCareful = true;
    const { verdict, fault } = attempt;
    ({ mayBeDone } = attempt);
    const { reconnects, server } = consequences[verdict];
    const step = nextStep(verdict, fault, hasTimedOut, hasUnreadKeys);
    hasTimedOut ||= verdict === "skip";
    if (reconnects) session.discard();
    if (step === "split") {
      const tokenInDoubt = mayBeDone ? token : undefined;
      return await splitBatch(session, batch, pending, fault, { ...options, token: tokenInDoubt, isCareful });
    }
    if (step !== "fail") await sleep(Math.max(0, Math.min(backoffMs(attempts), session.remainingMs)));
    const reason = reasonOf(fault, mayBeDone);
    // equivalent mutant: after this throw, lastFailure is never read.
    if (step === "fail" || !session.hasTime) throw new BatchFailure(reason, fault, server);
    // Used if all calls are cancelled meanwhile, which does not mean that the server has a problem.
    lastFailure = new BatchFailure(reason, fault, "healthy");
  }
}

function reasonOf(fault: unknown, mayBeDone: boolean): Error {
  return mayBeDone ? outcomeUnknown(fault) : storeUnavailable(fault);
}

function outcomesOf(
  { firstOf, postponed, token }: PreparedBatch,
  pending: readonly PendingDelete[],
  { fates, existing, remaining }: Extract<Attempt, { kind: "done" }>,
  mayBeDone: boolean,
  { defer, settled }: PartOptions,
): OutcomeOf {
  const outcomeOf: OutcomeOf = new Map();
  for (const pendingDelete of pending) {
    if (settled.has(pendingDelete)) continue;
    const first = firstOf.get(pendingDelete.id);
    const fate = fates.get(pendingDelete.id);
    // The key of a postponed deletion is unused if the other deletion with the same key has found no plant. If the
    // first deletion of a plant was settled by its key, the plant may still exist for the next deletion.
    const isRetried = postponed.has(pendingDelete)
      ? existing.has(pendingDelete.id)
      : fate === "used" || (first !== undefined && settled.has(first));
    if (isRetried) defer(pendingDelete);
    else if (fate === "locked")
      defer(mayBeDone && first === pendingDelete ? markInDoubt(pendingDelete, token) : pendingDelete);
    else if (fate === "kept") pendingDelete.reject(plantProtected(pendingDelete.id));
    // Of several deletions of one plant, only the first has deleted it.
    else if (!remaining.has(pendingDelete.id))
      outcomeOf.set(pendingDelete, fate === "deleted" && first === pendingDelete);
  }
  return outcomeOf;
}

/**
 * Splits a batch to find the part that the server refuses, so that a protected plant does not prevent deleting the
 * others.
 *
 * @param options - with a `token` only if the batch may be done
 */
async function splitBatch(
  session: Session,
  { firstOf }: PreparedBatch,
  pending: readonly PendingDelete[],
  fault: unknown,
  options: PartOptions,
): Promise<OutcomeOf> {
  const { token, settled, defer } = options;
  // If an earlier attempt was committed, it recorded only the first deletion of each plant. For the other deletions
  // nothing was done, and they are retried.
  const mayBeOf = (one: PendingDelete): boolean => token === undefined || firstOf.get(one.id) === one;
  const parts = pending.filter(mayBeOf);
  for (const pendingDelete of pending) if (!mayBeOf(pendingDelete) && !settled.has(pendingDelete)) defer(pendingDelete);
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return await finishRefused(session, only, fault, options);
  const middle = Math.floor(parts.length / 2);
  const outcomeOf: OutcomeOf = new Map();
  for (const half of [parts.slice(0, middle), parts.slice(middle)]) {
    // There is no time left for this half, and other batches are queued.
    if (!session.hasTime) rejectAll(half, reasonOf(fault, token !== undefined));
    else for (const [one, isDeleted] of await settlePart(session, half, options)) outcomeOf.set(one, isDeleted);
  }
  return outcomeOf;
}

/** Runs a part and settles its deletions immediately, because they do not depend on the other parts. */
async function settlePart(session: Session, part: readonly PendingDelete[], options: PartOptions): Promise<OutcomeOf> {
  try {
    const outcomeOf = await runPart(session, part, options);
    for (const [one, isDeleted] of outcomeOf) one.resolve(isDeleted);
    return outcomeOf;
  } catch (fault) {
    if (!(fault instanceof BatchFailure) || fault.server === "refusing" || fault.server === "unavailable") throw fault;
    rejectAll(part, fault.reason);
    return new Map();
  }
}

function rejectAll(half: readonly PendingDelete[], reason: Error): void {
  for (const pending of half) pending.reject(reason);
}

/**
 * Settles or defers a deletion that the server refuses even in a batch with only this deletion. An earlier attempt may
 * have succeeded.
 */
async function finishRefused(
  session: Session,
  only: PendingDelete,
  fault: unknown,
  options: PartOptions,
): Promise<OutcomeOf> {
  const { token, defer, settled } = options;
  let fate: PlantFate | undefined = verdictOn(fault) === "skip" ? "locked" : "kept";
  if (fate === "kept" && token !== undefined) fate = await lookUpRefused(session, only, token, options);
  if (fate === "locked") defer(token === undefined ? only : markInDoubt(only, token));
  else if (fate === "kept") only.reject(plantProtected(only.id, fault));
  else if (!settled.has(only)) return new Map([[only, fate === "deleted"]]);
  return new Map();
}

async function lookUpRefused(
  session: Session,
  only: PendingDelete,
  token: string,
  { placement, settled }: PartOptions,
): Promise<PlantFate | undefined> {
  try {
    const batch = prepareBatch(token, [only]);
    const fate = await findRefused(session, placement, batch);
    if (fate === undefined) await settled.settle(session, placement, batch.keyed);
    return fate;
  } catch (fault) {
    const verdict = verdictOn(fault);
    if (verdict === "skip") return "locked";
    session.discard();
    throw new BatchFailure(outcomeUnknown(fault), fault, consequences[verdict].server);
  }
}
