import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Outcomes, PendingDelete } from "../../delete-queue.ts";
import { outcomeUnknown, plantProtected, storeUnavailable } from "../../../service/index.ts";
import { backoffMs } from "../server/retry-transient-errors.ts";
import type { Session } from "../server/session.ts";
import { type Attempt, attemptBatch, findRefused, hasKey } from "./attempt-batch.ts";
import { type DeferredDelete, markInDoubt } from "./deferred-deletes.ts";
import { EndedDeletes } from "./ended-deletes.ts";
import { consequences, nextStep, type ServerState, verdictOn } from "./fault-table.ts";
import type { Placement, PlantFate } from "./placement.ts";
import { prepareBatch } from "./prepared-batch.ts";

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
   * Receives a deletion to attempt in a later batch, which must not start before this batch has ended: if this one
   * fails, all of its deletions fail.
   */
  readonly defer: (pending: DeferredDelete) => void;
  /** The placement of the plants of the batch. */
  readonly placement: Placement;
  /** The token of an earlier batch that may have deleted these plants, if any. */
  readonly token?: string | undefined;
  /**
   * Whether the first attempt is already careful: it drops cancelled calls, looks up keys, and skips locked plants. By
   * default, only attempts after anything unusual and those with a `token` are.
   */
  readonly isCareful?: boolean;
}

/** How a part of a batch begins. */
type Start = Pick<RunBatchOptions, "token" | "isCareful">;

/**
 * Deletes a batch on a session. The first attempt is a single statement. What follows an attempt:
 *
 * | attempt | next |
 * |---|---|
 * | succeeds | its deletions end as `#endSucceeded` lists; for plants that remain, a careful attempt follows |
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
  pending: readonly PendingDelete[],
  options: RunBatchOptions,
): Promise<Outcomes> {
  const run = new BatchRun(session, options);
  await run.attempt(pending, options);
  return pending.map((one) => run.ended.get(one));
}

class BatchRun {
  readonly ended = new EndedDeletes();
  readonly #session: Session;
  readonly #placement: Placement;
  readonly #defer: RunBatchOptions["defer"];

  constructor(session: Session, { placement, defer }: RunBatchOptions) {
    this.#session = session;
    this.#placement = placement;
    this.#defer = defer;
  }

  /** Attempts a part of the batch until all of its deletions have ended. */
  async attempt(part: readonly PendingDelete[], start: Start): Promise<void> {
    const { token = randomUUID() } = start;
    const [session, placement, ended] = [this.#session, this.#placement, this.ended];
    // Invariant: stays true from the first attempt that may have been committed.
    let isInDoubt = start.token !== undefined;
    let isCareful = isInDoubt || start.isCareful === true;
    // A batch starts careful while others wait for locks, so that one timeout is enough to look for the locked plant.
    let hasTimedOut = start.isCareful === true;
    let lastFailure: BatchFailure | undefined;
    for (let attempts = 0; ; attempts++) {
      // The first attempt reads no signals, which would create them: the queue has just checked the deletions.
      const open = isCareful ? ended.openOf(part) : part;
      if (open.length === 0 && lastFailure !== undefined) throw lastFailure;
      if (open.length === 0) return;
      const attempt = await attemptBatch(session, open, { placement, token, ended, isCareful, isInDoubt });
      if (attempt.kind === "succeeded") {
        this.#endSucceeded(open, attempt, isInDoubt ? token : undefined);
        if (attempt.remaining.size === 0) return;
        // These outcomes are final, even if the rest fails.
        ended.resolve(part);
        return await this.#attemptSeparately(ended.openOf(part), { ...start, isCareful: true });
      }
      const { verdict, fault } = attempt;
      ({ isInDoubt } = attempt);
      const { reconnects, server } = consequences[verdict];
      const step = nextStep(verdict, fault, hasTimedOut, !isCareful && open.some(hasKey));
      isCareful = true;
      hasTimedOut ||= verdict === "skip";
      if (reconnects) session.discard();
      if (step === "split") {
        // With those that were cancelled meanwhile: the refused statement contained them.
        const refused = open.filter((one) => !ended.has(one));
        return await this.#split(refused, fault, isInDoubt ? token : undefined);
      }
      if (step === "retry") await sleep(Math.max(0, Math.min(backoffMs(attempts), session.remainingMs)));
      const reason = reasonOf(fault, isInDoubt);
      // equivalent mutant: after this throw, lastFailure is never read.
      if (step === "fail" || !session.hasTime) throw new BatchFailure(reason, fault, server);
      // Used if all calls are cancelled meanwhile, which does not mean that the server has a problem.
      lastFailure = new BatchFailure(reason, fault, "healthy");
    }
  }

  /** Attempts a part whose end does not depend on the rest of the batch, and settles its deletions immediately. */
  async #attemptSeparately(part: readonly PendingDelete[], start: Start): Promise<void> {
    try {
      await this.attempt(part, start);
      this.ended.resolve(part);
    } catch (fault) {
      if (!(fault instanceof BatchFailure) || fault.server === "refusing" || fault.server === "unavailable")
        throw fault;
      for (const one of part) this.ended.reject(one, fault.reason);
    }
  }

  /**
   * Splits a part to find the deletion that the server refuses, so that a protected plant does not prevent deleting the
   * others.
   *
   * @param token - only if the part is in doubt
   */
  async #split(part: readonly PendingDelete[], fault: unknown, token: string | undefined): Promise<void> {
    // If an earlier attempt was committed, it recorded only the first deletion of each plant. For the other deletions
    // nothing was done.
    const { firstOf } = prepareBatch("", part);
    const isIncluded = (one: PendingDelete): boolean => token === undefined || firstOf.get(one.id) === one;
    const included = part.filter(isIncluded);
    for (const one of part) if (!isIncluded(one)) this.#deferOne(one);
    const [only] = included;
    if (only !== undefined && included.length === 1) return await this.#endRefused(only, fault, token);
    const middle = Math.floor(included.length / 2);
    for (const half of [included.slice(0, middle), included.slice(middle)]) {
      if (this.#session.hasTime) await this.#attemptSeparately(half, { token, isCareful: true });
      // There is no time left for this half, and other batches are queued.
      else for (const one of half) this.ended.reject(one, reasonOf(fault, token !== undefined));
    }
  }

  /** Ends a deletion that the server refuses even alone. An earlier attempt may have succeeded. */
  async #endRefused(only: PendingDelete, fault: unknown, token: string | undefined): Promise<void> {
    if (verdictOn(fault) === "skip") return this.#end(only, "locked", token);
    const fate = token === undefined ? "kept" : await this.#findRefused(only, token);
    if (!this.ended.has(only)) this.#end(only, fate, token, fault);
  }

  async #findRefused(only: PendingDelete, token: string): Promise<PlantFate | undefined> {
    const [session, placement] = [this.#session, this.#placement];
    try {
      const batch = prepareBatch(token, [only]);
      const fate = await findRefused(session, placement, batch);
      if (fate === undefined) await this.ended.settleByKey(session, placement, batch.keyed);
      return fate;
    } catch (fault) {
      const verdict = verdictOn(fault);
      if (verdict === "skip") return "locked";
      session.discard();
      throw new BatchFailure(outcomeUnknown(fault), fault, consequences[verdict].server);
    }
  }

  /**
   * Ends the deletions of an attempt that has succeeded:
   *
   * | plant | first deletion of the plant | other deletions of the plant |
   * |---|---|---|
   * | deleted | `true` | `false` |
   * | did not exist | `false` | `false` |
   * | locked | deferred, in doubt if an earlier attempt may have deleted it | deferred |
   * | its key is used | settled by the key, or deferred until its record is visible | deferred |
   * | kept by a trigger | rejected as protected | rejected as protected |
   * | remains | attempted again | attempted again |
   *
   * A postponed deletion, whose key another deletion of the batch has, is deferred if its plant exists: the key is
   * unused if the other deletion has found no plant. Otherwise it ends with `false`.
   *
   * @param token - only if the batch was in doubt before this attempt
   */
  #endSucceeded(
    part: readonly PendingDelete[],
    { batch, fates, existing, remaining }: Extract<Attempt, { kind: "succeeded" }>,
    token: string | undefined,
  ): void {
    for (const one of part) {
      if (this.ended.has(one)) continue;
      const first = batch.firstOf.get(one.id);
      const fate = fates.get(one.id);
      if (batch.postponed.has(one)) {
        if (existing.has(one.id)) this.#deferOne(one);
        else this.ended.set(one, false);
      } else if (remaining.has(one.id)) continue;
      else if (first === one || fate === "kept") this.#end(one, fate, token);
      // The first deletion of the plant was deferred or settled by its key.
      else if (first === undefined || this.ended.get(first) === undefined) this.#deferOne(one);
      else this.ended.set(one, false);
    }
  }

  /** Ends the first deletion of a plant with this fate. */
  #end(one: PendingDelete, fate: PlantFate | undefined, token: string | undefined, fault?: unknown): void {
    if (fate === "locked") this.#deferOne(one, token);
    else if (fate === "used") this.#deferOne(one);
    else if (fate === "kept") this.ended.reject(one, plantProtected(one.id, fault));
    else this.ended.set(one, fate === "deleted");
  }

  /** @param token - that of an attempt that may have deleted the plant */
  #deferOne(one: PendingDelete, token?: string): void {
    this.ended.set(one, undefined);
    this.#defer(token === undefined ? one : markInDoubt(one, token));
  }
}

function reasonOf(fault: unknown, isInDoubt: boolean): Error {
  return isInDoubt ? outcomeUnknown(fault) : storeUnavailable(fault);
}
