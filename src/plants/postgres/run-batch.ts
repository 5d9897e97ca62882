import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Outcomes, PendingDelete } from "../delete-queue.ts";
import { outcomeUnknown, plantKept, storeAway } from "../errors.ts";
import { type DeleteBatch, deleteBatch, deleteBatchAgain, toDeleteBatch } from "./delete-batch.ts";
import { type Verdict, verdictOn } from "./fault-table.ts";
import type { Session } from "./session.ts";

// Milliseconds from the first fault, for a batch and everything it is divided into. Long enough for a restart or
// failover of a few seconds.
const retryForMs = 10_000;

// Milliseconds. The victim of a deadlock is retried almost at once, and a server that is starting is not flooded.
const backoffMsFirst = 5;
const backoffMsMax = 1_000;

/** A batch was given up. */
export class BatchGivenUp extends Error {
  /** The error for its callers. */
  readonly reason: Error;
  /** The last fault. */
  readonly fault: unknown;
  /** Whether the next batch may fare better: the fault concerned these rows, and the server is well. */
  readonly isServerWell: boolean;

  constructor(reason: Error, fault: unknown, verdict: Verdict) {
    super("a batch of deletions was given up", { cause: fault });
    this.reason = reason;
    this.fault = fault;
    this.isServerWell = verdict === "repeat" || verdict === "divide";
  }
}

/**
 * Deletes a batch on a session, and repeats it as long as the fault table says that this may help and somebody waits
 * for it. Deletions that are given up meanwhile are rejected, and left out of the next attempt.
 *
 * @param patience - aborts when nothing more is to be started; by default ten seconds after the first fault
 * @throws BatchGivenUp
 */
export async function runBatch(
  session: Session,
  pending: readonly PendingDelete[],
  patience?: AbortSignal,
): Promise<Outcomes> {
  const token = randomUUID();
  let batch = toDeleteBatch(token, pending, patience !== undefined);
  // Invariant: true from the first fault that may have followed a commit, to the end. A later fault that did nothing
  // says nothing about the earlier attempt.
  let mayBeDone = false;
  for (let tries = 0; ; tries++) {
    const attempt = await attemptBatch(session, batch, mayBeDone);
    if (attempt.kind === "done") return attempt.outcomes;
    const { verdict, fault } = attempt;
    patience ??= AbortSignal.timeout(retryForMs);
    mayBeDone ||= verdict === "look";
    if (verdict === "reconnect" || verdict === "look") session.discard();
    if (verdict === "divide" && !mayBeDone) return await divide(session, pending, fault, patience);
    const givenUp = new BatchGivenUp(mayBeDone ? outcomeUnknown(fault) : storeAway(fault), fault, verdict);
    if (verdict === "give-up" || verdict === "divide" || patience.aborted) throw givenUp;
    await sleep(backoffMs(tries));
    batch = toDeleteBatch(token, pending, true);
    if (batch.indexOf.size === 0) throw givenUp;
  }
}

/**
 * Finds the part of a batch that the server refuses, none of which has been done: one plant that must not be deleted
 * shall not protect the others.
 */
async function divide(
  session: Session,
  pending: readonly PendingDelete[],
  fault: unknown,
  patience: AbortSignal,
): Promise<Outcomes> {
  const [only] = pending;
  if (only !== undefined && pending.length === 1) {
    only.reject(plantKept(only.id, fault));
    return [false];
  }
  const middle = Math.floor(pending.length / 2);
  const outcomes: boolean[] = [];
  for (const half of [pending.slice(0, middle), pending.slice(middle)]) {
    // Other batches are waiting: there is no time left for this half.
    if (patience.aborted) outcomes.push(...refuse(half, storeAway(fault)));
    else outcomes.push(...(await runHalf(session, half, patience)));
  }
  return outcomes;
}

/** Answers the callers of a half at once: the fate of the other half does not undo what was done for this one. */
async function runHalf(session: Session, half: readonly PendingDelete[], patience: AbortSignal): Promise<Outcomes> {
  try {
    const outcomes = await runBatch(session, half, patience);
    half.forEach(({ resolve }, i) => resolve(outcomes[i] === true));
    return outcomes;
  } catch (fault) {
    if (!(fault instanceof BatchGivenUp) || !fault.isServerWell) throw fault;
    return refuse(half, fault.reason);
  }
}

function refuse(half: readonly PendingDelete[], reason: Error): Outcomes {
  half.forEach((pending) => pending.reject(reason));
  return half.map(() => false);
}

type Attempt =
  | { readonly kind: "done"; readonly outcomes: Outcomes }
  | { readonly kind: "failed"; readonly verdict: Verdict; readonly fault: unknown };

async function attemptBatch(session: Session, batch: DeleteBatch, mayBeDone: boolean): Promise<Attempt> {
  try {
    await session.connect();
  } catch (fault) {
    // Nothing has been sent.
    return { kind: "failed", verdict: verdictOn(fault) === "give-up" ? "give-up" : "reconnect", fault };
  }
  try {
    const outcomes = await (mayBeDone ? deleteBatchAgain(session, batch) : deleteBatch(session, batch));
    return { kind: "done", outcomes };
  } catch (fault) {
    return { kind: "failed", verdict: verdictOn(fault), fault };
  }
}

// Full jitter: replicas that were refused together do not come back together.
function backoffMs(tries: number): number {
  return Math.random() * Math.min(backoffMsMax, backoffMsFirst * 2 ** tries);
}
