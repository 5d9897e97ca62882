import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Deletion, endings, type FailedEnding, openOf, TransitionError } from "./deletion.ts";
import { backoffMs } from "../server/retry-transient-errors.ts";
import type { SessionTimeouts } from "../server/connect.ts";
import type { Session } from "../server/session.ts";
import { attemptBatch, endBy, endByKey, findOutcomeOfRefused, hasKey } from "./attempt-batch.ts";
import { consequences, nextStep, type ServerState, verdictOn } from "./fault-table.ts";
import type { Placement, PlantOutcome } from "./placement.ts";
import { prepareBatch } from "./prepared-batch.ts";

/** The timeouts for deletions. A batch normally holds locks for a few milliseconds. */
export const deleteTimeouts: SessionTimeouts = {
  lockTimeoutMs: 100,
  statementTimeoutMs: 5_000,
  responseTimeoutMs: 7_000,
};

/** The error for a failed batch. */
export class BatchFailure extends Error {
  readonly ending: FailedEnding;
  /** The error from the batch's last attempt. */
  readonly fault: unknown;
  readonly server: ServerState;

  constructor(ending: FailedEnding, fault: unknown, server: ServerState) {
    super("a batch of deletions failed");
    this.ending = ending;
    this.fault = fault;
    this.server = server;
  }
}

/** Options for {@link runBatch}. */
export interface RunBatchOptions {
  readonly placement: Placement;
  /** Whether the first attempt is careful (`AttemptMode.isCareful`), like later attempts and attempts in doubt. */
  readonly isCareful?: boolean;
}

/** Parameters for the first of several attempts. `token` is set if earlier attempts may have deleted the plants. */
interface Start {
  readonly token?: string | undefined;
  readonly isCareful?: boolean | undefined;
}

/**
 * Deletes a batch on a session, and ends or defers each deletion in the batch. All deletions in doubt must have the
 * same token. The first attempt is a single statement. An attempt has these results:
 *
 * | attempt | next |
 * |---|---|
 * | succeeds | its deletions have ended or are deferred; for open ones, a careful attempt follows |
 * | fails, with the step `retry` | after a pause, a careful attempt with the same token |
 * | fails, with the step `split` | each half is run separately; a deletion that is refused alone ends as protected |
 * | fails, with the step `fail` or without time for another attempt | the deletions of this part fail |
 *
 * A failed half fails the whole batch only if the server is the cause. The fault table determines the step. Careful
 * attempts first reject cancelled calls.
 *
 * @throws BatchFailure
 */
export async function runBatch(
  session: Session,
  batch: readonly Deletion[],
  { placement, isCareful }: RunBatchOptions,
): Promise<void> {
  await new BatchRun(session, placement).attempt(batch, { token: batch[0]?.token, isCareful });
}

class BatchRun {
  readonly #session: Session;
  readonly #placement: Placement;

  constructor(session: Session, placement: Placement) {
    this.#session = session;
    this.#placement = placement;
  }

  /** Attempts deletions in the batch until every deletion in `part` has ended or is deferred. */
  async attempt(part: readonly Deletion[], start: Start): Promise<void> {
    const { token = randomUUID() } = start;
    const [session, placement] = [this.#session, this.#placement];
    // Invariant: `isInDoubt` stays true from the first attempt that may have been committed.
    let isInDoubt = start.token !== undefined;
    let isCareful = isInDoubt || start.isCareful === true;
    // If other deletions wait for locks, the first attempt is careful, and a single timeout may split the batch.
    let hasTimedOut = start.isCareful === true;
    let lastFailure: BatchFailure | undefined;
    for (let attempts = 0; ; attempts++) {
      // The queue has just checked for cancelled calls. A second check would create a signal for each call.
      const open = isCareful ? openOf(part) : part;
      if (open.length === 0 && lastFailure !== undefined) throw lastFailure;
      if (open.length === 0) return;
      const failed = await attemptBatch(session, open, { placement, token, isCareful, isInDoubt });
      if (failed === undefined) {
        if (!part.some(({ isOpen }) => isOpen)) return;
        return await this.#attemptSeparately(openOf(part), { ...start, isCareful: true });
      }
      const { verdict, fault } = failed;
      ({ isInDoubt } = failed);
      const { reconnects, server } = consequences[verdict];
      const step = nextStep(verdict, fault, hasTimedOut, !isCareful && open.some(hasKey));
      isCareful = true;
      hasTimedOut ||= verdict === "skip";
      if (reconnects) session.discard();
      if (step === "split") {
        // Includes deletions that were cancelled during the attempt, because the refused statement contained them.
        const refused = open.filter(({ isOpen }) => isOpen);
        return await this.#split(refused, fault, isInDoubt ? token : undefined);
      }
      if (step === "retry") await sleep(Math.max(0, Math.min(backoffMs(attempts), session.remainingMs)));
      const ending = endingOf(fault, isInDoubt);
      // equivalent mutant: after this throw, lastFailure is never read.
      if (step === "fail" || !session.hasTime) throw new BatchFailure(ending, fault, server);
      // Thrown if all calls are cancelled before the next attempt. Cancelled calls do not make the server unhealthy.
      lastFailure = new BatchFailure(ending, fault, "healthy");
    }
  }

  /** Attempts deletions that do not depend on the rest of the batch. */
  async #attemptSeparately(part: readonly Deletion[], start: Start): Promise<void> {
    try {
      await this.attempt(part, start);
    } catch (fault) {
      if (!(fault instanceof BatchFailure) || fault.server === "refusing" || fault.server === "unavailable")
        throw fault;
      endOpen(part, fault.ending);
    }
  }

  // Splits deletions to find the deletion that the server refuses. `token` is set only if the deletions are in doubt.
  async #split(part: readonly Deletion[], fault: unknown, token: string | undefined): Promise<void> {
    let included = part;
    if (token !== undefined) {
      // A committed attempt recorded only each plant's first deletion, and did nothing for the other deletions.
      const { firstDeletions } = prepareBatch(token, part);
      included = [...firstDeletions.values()];
      for (const one of included) one.doubt(token);
      for (const one of part) if (firstDeletions.get(one.id) !== one) one.defer();
    }
    const [only] = included;
    if (only !== undefined && included.length === 1) return await this.#endRefused(only, fault, token);
    const middle = Math.floor(included.length / 2);
    for (const half of [included.slice(0, middle), included.slice(middle)]) {
      if (this.#session.hasTime) await this.#attemptSeparately(half, { token, isCareful: true });
      // The half fails if no time remains, because other batches are queued.
      else endOpen(half, endingOf(fault, token !== undefined));
    }
  }

  /** Ends a deletion that the server refused in a separate statement. An earlier attempt may have deleted the plant. */
  async #endRefused(only: Deletion, fault: unknown, token: string | undefined): Promise<void> {
    const verdict = verdictOn(fault);
    if (verdict === "skip") return only.defer();
    const outcome = token === undefined ? "protected" : await this.#findOutcomeOfRefused(only, token);
    if (!only.isOpen) return;
    // The plant exists, and a trigger has failed, but not to protect the plant.
    if (verdict === "isolate" && outcome === "protected") only.end(endings.unavailable(fault));
    else endBy(outcome, only, fault);
  }

  async #findOutcomeOfRefused(only: Deletion, token: string): Promise<PlantOutcome | undefined> {
    const [session, placement] = [this.#session, this.#placement];
    try {
      const batch = prepareBatch(token, [only]);
      const outcome = await findOutcomeOfRefused(session, placement, batch);
      if (outcome === undefined) await endByKey(session, placement, batch.keyed);
      return outcome;
    } catch (fault) {
      if (fault instanceof TransitionError) throw fault;
      const verdict = verdictOn(fault);
      if (verdict === "skip") return "deferred";
      session.discard();
      throw new BatchFailure(endings.unknown(fault), fault, consequences[verdict].server);
    }
  }
}

function endOpen(part: readonly Deletion[], ending: FailedEnding): void {
  for (const one of part) if (one.isOpen) one.end(ending);
}

function endingOf(fault: unknown, isInDoubt: boolean): FailedEnding {
  return isInDoubt ? endings.unknown(fault) : endings.unavailable(fault);
}
