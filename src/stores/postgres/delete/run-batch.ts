import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Deletion, endings, type FailedEnding, openOf, TransitionError } from "../../contract/deletion.ts";
import { backoffMs } from "../server/retry-transient-errors.ts";
import type { SessionTimeouts } from "../server/connect.ts";
import type { Session } from "../server/session.ts";
import { attemptBatch, endBy, endByKey, findOutcomeOfRefused, hasKey } from "./attempt-batch.ts";
import { consequences, nextStep, type ServerState, verdictOn } from "./fault-table.ts";
import type { Placement, PlantFate } from "./placement.ts";
import { prepareBatch } from "./prepared-batch.ts";

/** The timeouts for deletions. Batches hold their locks for a few milliseconds, and statements take as long. */
export const deleteTimeouts: SessionTimeouts = {
  lockTimeoutMs: 100,
  statementTimeoutMs: 5_000,
  responseTimeoutMs: 7_000,
};

/** The error for a batch that failed. */
export class BatchFailure extends Error {
  /** How the deletions end that are left open. */
  readonly ending: FailedEnding;
  /** The last error. */
  readonly fault: unknown;
  /** The server's state according to that error. */
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
  /** The batch's placement. */
  readonly placement: Placement;
  /**
   * Whether the first attempt is already careful: it drops cancelled calls, looks up keys, and skips locked plants. By
   * default, only attempts after anything unusual and attempts for deletions in doubt are.
   */
  readonly isCareful?: boolean;
}

/** How a part of a batch begins. The token is from earlier attempts that may have deleted its plants, if any. */
interface Start {
  readonly token?: string | undefined;
  readonly isCareful?: boolean | undefined;
}

/**
 * Deletes a batch on a session, and ends or defers each of its deletions. All have the same token if they are in doubt.
 * The first attempt is a single statement. What follows an attempt:
 *
 * | attempt | next |
 * |---|---|
 * | succeeds | its deletions have ended or are deferred; for open ones, a careful attempt follows |
 * | fails, with the step `retry` | after a pause, a careful attempt with the same token |
 * | fails, with the step `split` | each half is run separately; a deletion that is refused alone ends as protected |
 * | fails, with the step `fail` or without time for another attempt | the deletions of this part fail |
 *
 * The fault table determines the step. A part that fails ends the batch only if the server is the cause. Before each
 * careful attempt, the deletions whose call was cancelled are rejected.
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

  /** Attempts a part of the batch until all its deletions have ended. */
  async attempt(part: readonly Deletion[], start: Start): Promise<void> {
    const { token = randomUUID() } = start;
    const [session, placement] = [this.#session, this.#placement];
    // Invariant: stays true from the first attempt that may have been committed.
    let isInDoubt = start.token !== undefined;
    let isCareful = isInDoubt || start.isCareful === true;
    // A batch starts careful while others wait for locks, so that one timeout is enough to look for the locked plant.
    let hasTimedOut = start.isCareful === true;
    let lastFailure: BatchFailure | undefined;
    for (let attempts = 0; ; attempts++) {
      // The first attempt reads no signals, which would create them. The queue has just checked the deletions.
      const open = isCareful ? openOf(part) : part;
      if (open.length === 0 && lastFailure !== undefined) throw lastFailure;
      if (open.length === 0) return;
      const failed = await attemptBatch(session, open, { placement, token, isCareful, isInDoubt });
      if (failed === undefined) {
        if (!part.some(({ isOpen }) => isOpen)) return;
        // The endings so far are final, even if the rest fails.
        answer(part);
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
        // Includes deletions that were cancelled meanwhile, because the refused statement contained them.
        const refused = open.filter(({ isOpen }) => isOpen);
        return await this.#split(refused, fault, isInDoubt ? token : undefined);
      }
      if (step === "retry") await sleep(Math.max(0, Math.min(backoffMs(attempts), session.remainingMs)));
      const ending = endingOf(fault, isInDoubt);
      // equivalent mutant: after this throw, lastFailure is never read.
      if (step === "fail" || !session.hasTime) throw new BatchFailure(ending, fault, server);
      // Used if all calls are cancelled meanwhile, which does not mean that the server has a problem.
      lastFailure = new BatchFailure(ending, fault, "healthy");
    }
  }

  /** Attempts a part whose end does not depend on the rest of the batch, and answers its deletions immediately. */
  async #attemptSeparately(part: readonly Deletion[], start: Start): Promise<void> {
    try {
      await this.attempt(part, start);
      answer(part);
    } catch (fault) {
      if (!(fault instanceof BatchFailure) || fault.server === "refusing" || fault.server === "unavailable")
        throw fault;
      endOpen(part, fault.ending);
    }
  }

  /**
   * Splits a part to find the deletion that the server refuses, so that a protected plant does not prevent deleting the
   * others.
   *
   * @param token - only if the part is in doubt
   */
  async #split(part: readonly Deletion[], fault: unknown, token: string | undefined): Promise<void> {
    let included = part;
    if (token !== undefined) {
      // If an earlier attempt was committed, it recorded only each plant's first deletion. For the other deletions
      // nothing was done.
      const { firstOf } = prepareBatch(token, part);
      included = [...firstOf.values()];
      for (const one of included) one.doubt(token);
      for (const one of part) if (firstOf.get(one.id) !== one) one.defer();
    }
    const [only] = included;
    if (only !== undefined && included.length === 1) return await this.#endRefused(only, fault, token);
    const middle = Math.floor(included.length / 2);
    for (const half of [included.slice(0, middle), included.slice(middle)]) {
      if (this.#session.hasTime) await this.#attemptSeparately(half, { token, isCareful: true });
      // There is no time left for this half, and other batches are queued.
      else endOpen(half, endingOf(fault, token !== undefined));
    }
  }

  /** Ends a deletion that the server refuses even alone. An earlier attempt may have succeeded. */
  async #endRefused(only: Deletion, fault: unknown, token: string | undefined): Promise<void> {
    const verdict = verdictOn(fault);
    if (verdict === "skip") return only.defer();
    const fate = token === undefined ? "protected" : await this.#findOutcomeOfRefused(only, token);
    if (!only.isOpen) return;
    // The plant exists, but nothing protects it.
    if (verdict === "isolate" && fate === "protected") only.end(endings.unavailable(fault));
    else endBy(fate, only, fault);
  }

  async #findOutcomeOfRefused(only: Deletion, token: string): Promise<PlantFate | undefined> {
    const [session, placement] = [this.#session, this.#placement];
    try {
      const batch = prepareBatch(token, [only]);
      const fate = await findOutcomeOfRefused(session, placement, batch);
      if (fate === undefined) await endByKey(session, placement, batch.keyed);
      return fate;
    } catch (fault) {
      if (fault instanceof TransitionError) throw fault;
      const verdict = verdictOn(fault);
      if (verdict === "skip") return "deferred";
      session.discard();
      throw new BatchFailure(endings.outcomeUnknown(fault), fault, consequences[verdict].server);
    }
  }
}

/** Ends a part's open deletions, and answers immediately. */
function endOpen(part: readonly Deletion[], ending: FailedEnding): void {
  for (const one of part) if (one.isOpen) one.end(ending);
}

function answer(part: readonly Deletion[]): void {
  for (const one of part) one.answer();
}

function endingOf(fault: unknown, isInDoubt: boolean): FailedEnding {
  return isInDoubt ? endings.outcomeUnknown(fault) : endings.unavailable(fault);
}
