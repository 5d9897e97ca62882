import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Outcomes, TakenDelete } from "../delete-queue.ts";
import { outcomeUnknown, plantKept, storeAway } from "../errors.ts";
import { type DeleteBatch, deleteBatch, deleteBatchAgain, toDeleteBatch } from "./delete-batch.ts";
import { type Verdict, verdictOn } from "./fault-table.ts";
import type { Session } from "./session.ts";

// Milliseconds from the first fault, for a batch and all that it is divided into. Long enough for a restart or a
// failover of a few seconds; who waits longer is told.
const retryForMs = 10_000;

// Milliseconds. The first retry of a deadlock's victim is all but at once, and a server that comes up is not stormed.
const backoffMsFirst = 5;
const backoffMsMax = 1_000;

/** A batch was given up. */
export class BatchGivenUp extends Error {
  /** What its callers are told. */
  readonly reason: Error;
  /** What came last. */
  readonly fault: unknown;
  /** Whether the next batch can fare better: it was about these rows, and the server is well. */
  readonly isServerWell: boolean;

  constructor(reason: Error, fault: unknown, verdict: Verdict) {
    super("a batch of deletions was given up", { cause: fault });
    this.reason = reason;
    this.fault = fault;
    this.isServerWell = verdict === "repeat" || verdict === "divide";
  }
}

/**
 * Deletes a batch on a session, and repeats it for as long as the fault table says that this helps and
 * somebody waits for it. Calls that are given up meanwhile are told so, and left out of the next try.
 *
 * @param patience - aborted when nothing is to be begun again; by default ten seconds after the first fault
 * @throws BatchGivenUp
 */
export async function runBatch(
  session: Session,
  taken: readonly TakenDelete[],
  patience?: AbortSignal,
): Promise<Outcomes> {
  const token = randomUUID();
  let batch = toDeleteBatch(token, taken);
  // Invariant: true from the first fault that may have come after a commit, to the end. A later fault
  // that did nothing says nothing about the earlier attempt.
  let mayBeDone = false;
  for (let tries = 0; ; tries++) {
    const attempt = await attemptBatch(session, batch, mayBeDone);
    if (attempt.kind === "done") return attempt.outcomes;
    const { verdict, fault } = attempt;
    patience ??= AbortSignal.timeout(retryForMs);
    mayBeDone ||= verdict === "look";
    if (verdict === "reconnect" || verdict === "look") session.discard();
    if (verdict === "divide" && !mayBeDone) return await divide(session, taken, fault, patience);
    const givenUp = new BatchGivenUp(mayBeDone ? outcomeUnknown(fault) : storeAway(fault), fault, verdict);
    if (verdict === "give-up" || verdict === "divide" || patience.aborted) throw givenUp;
    await sleep(backoffMs(tries));
    batch = toDeleteBatch(token, taken);
    if (batch.indexOf.size === 0) throw givenUp;
  }
}

/**
 * Finds what the server refuses in a batch of which it has done nothing: one plant that must not be
 * deleted shall not keep the others.
 */
async function divide(
  session: Session,
  taken: readonly TakenDelete[],
  fault: unknown,
  patience: AbortSignal,
): Promise<Outcomes> {
  const [only] = taken;
  if (only !== undefined && taken.length === 1) {
    only.reject(plantKept(only.id, fault));
    return [false];
  }
  const middle = Math.floor(taken.length / 2);
  const outcomes: boolean[] = [];
  for (const half of [taken.slice(0, middle), taken.slice(middle)]) {
    // Others wait for their turn: no time is left to begin this half.
    if (patience.aborted) outcomes.push(...refuse(half, storeAway(fault)));
    else outcomes.push(...(await runHalf(session, half, patience)));
  }
  return outcomes;
}

/** Tells the callers of a half at once: what becomes of the other half does not undo what was done for this one. */
async function runHalf(session: Session, half: readonly TakenDelete[], patience: AbortSignal): Promise<Outcomes> {
  try {
    const outcomes = await runBatch(session, half, patience);
    half.forEach(({ resolve }, i) => resolve(outcomes[i] === true));
    return outcomes;
  } catch (fault) {
    if (!(fault instanceof BatchGivenUp) || !fault.isServerWell) throw fault;
    return refuse(half, fault.reason);
  }
}

function refuse(half: readonly TakenDelete[], reason: Error): Outcomes {
  half.forEach((taken) => taken.reject(reason));
  return half.map(() => false);
}

type Attempt =
  | { readonly kind: "done"; readonly outcomes: Outcomes }
  | { readonly kind: "failed"; readonly verdict: Verdict; readonly fault: unknown };

async function attemptBatch(session: Session, batch: DeleteBatch, mayBeDone: boolean): Promise<Attempt> {
  try {
    await session.connect();
  } catch (fault) {
    // Nothing was sent yet.
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
