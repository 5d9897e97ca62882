import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { BatchResult, Outcome, Requested } from "../../contract/backend.ts";
import { briefTransaction } from "../server/pinned-settings.ts";
import { backoffMs, type Session } from "../server/session.ts";
import { concernsPlants, type Verdict } from "./fault-table.ts";
import { type Deleted, type StoreTables, toArrayLiteral } from "./store-tables.ts";

/** Why a batch failed. */
export interface BatchFailure {
  readonly fault: unknown;
  readonly verdict: Verdict;
}

/**
 * A batch of deletions on a session, until the session's deadline.
 *
 * An attempt is one transaction, with a random token in its records. If it may have been committed, its token is added
 * to the doubts of its deletions. An attempt that still runs holds the locks of its plants, which are `locked` for others.
 * So nothing else is needed to find out what became of it: the next attempt deletes what is free, and then asks why the
 * rest was not deleted. An error that concerns only some plants halves the batch, until the plant is alone.
 */
export class BatchRun {
  /** Why the batch failed. Undefined if only some of its deletions failed. */
  failure: BatchFailure | undefined;
  /** Whether plants were deleted, which shows that commits work. A replayed deletion writes nothing. */
  hasDeleted = false;
  readonly #session: Session;
  readonly #tables: StoreTables;
  readonly #outcomes = new Map<Requested, Outcome>();
  readonly #causes = new Map<Requested, unknown>();

  constructor(session: Session, tables: StoreTables) {
    this.#session = session;
    this.#tables = tables;
  }

  /** Deletes a batch. Only a bug rejects. */
  async run(batch: readonly Requested[]): Promise<BatchResult> {
    await this.#run(batch);
    return {
      // A deletion without an outcome was not attempted, or has failed with the batch.
      outcomes: batch.map((one) => this.#outcomes.get(one) ?? "unavailable"),
      causes: batch.map((one) => this.#causes.get(one)),
      failure: this.failure?.fault,
    };
  }

  async #run(part: readonly Requested[]): Promise<void> {
    const session = this.#session;
    for (let attempts = 0; ; attempts++) {
      // The queue has just checked for cancelled calls. A second check would create a signal for each call.
      const open =
        attempts === 0
          ? part
          : part.filter((one) => this.#outcomes.get(one) !== "deleted" && !one.call.context.signal.aborted);
      if (open.length === 0) return;
      const failed = await this.#attempt(open);
      if (failed === undefined) return;
      if (concernsPlants.has(failed.verdict)) return await this.#runHalves(open, failed);
      session.discard();
      if (failed.verdict !== "fail") await sleep(Math.max(0, Math.min(backoffMs(attempts), session.remainingMs)));
      if (failed.verdict === "fail" || !session.hasTime) return void (this.failure = failed);
    }
  }

  async #runHalves(open: readonly Requested[], failed: BatchFailure): Promise<void> {
    const middle = Math.ceil(open.length / 2);
    for (const half of [open.slice(0, middle), open.slice(middle)]) {
      if (!this.#session.hasTime) this.failure ??= failed;
      if (this.failure === undefined) await this.#run(half);
    }
  }

  /** Attempts to delete plants. Returns the failure if some deletions have no outcome. */
  async #attempt(open: readonly Requested[]): Promise<BatchFailure | undefined> {
    const [session, tables, token] = [this.#session, this.#tables, randomUUID()];
    try {
      await session.connect();
    } catch (fault) {
      // Without a connection, no statement has been sent.
      return { fault, verdict: tables.verdictOn(fault) === "fail" ? "fail" : "retry" };
    }
    const { processId } = session;
    const sent = firstOfEach(open);
    const [only] = open;
    let refusal: BatchFailure | undefined;
    let deleted: Deleted | undefined;
    try {
      deleted = await tables.deletePlants(session, [...sent.values()], token);
      this.hasDeleted ||= deleted.ids.size > 0;
    } catch (fault) {
      let verdict = tables.verdictOn(fault);
      // A pooler may have sent another statement's error. Then the connection does not respond in order, or is lost.
      const [{ status }] = await Promise.allSettled([verdict !== "unknown" && session.runChecked("SELECT")]);
      if (status === "rejected" || session.processId !== processId) verdict = "unknown";
      refusal = { fault, verdict };
      if (refusal.verdict === "unknown") for (const { doubts } of sent.values()) doubts.push(token);
      if (open.length > 1 || !concernsPlants.has(refusal.verdict)) return refusal;
    }
    const left = open.filter((one) => {
      const isDeleted = sent.get(one.id) === one && deleted?.ids.has(String(one.id)) === true;
      if (isDeleted) this.#outcomes.set(one, "deleted");
      return !isDeleted;
    });
    if (left.length === 0) return undefined;
    try {
      // A lost attempt that still runs has locked the plant, and may delete it although this one was refused.
      const isRefused = refusal !== undefined && refusal.verdict !== "locked";
      const kept =
        deleted?.isKept === true || (isRefused && (await this.#isFree(only?.id ?? 0n))) ? only?.id : undefined;
      const whyOf = await this.#findWhy(left);
      for (const one of left) {
        const why = whyOf(one);
        const isKept = why === "locked" && one.id === kept;
        this.#outcomes.set(one, !isKept ? why : refusal?.verdict === "broken" ? "unavailable" : "protected");
        if (isKept) this.#causes.set(one, refusal?.fault);
      }
      return undefined;
    } catch (fault) {
      const verdict = tables.verdictOn(fault);
      return { fault, verdict: concernsPlants.has(verdict) ? "retry" : verdict };
    }
  }

  /** Returns whether a plant exists, and no other transaction has locked it. */
  async #isFree(id: bigint): Promise<boolean> {
    const sql = `SELECT id FROM ${this.#tables.schema.plants} WHERE id = ${id} FOR UPDATE SKIP LOCKED`;
    return (await this.#session.transact(briefTransaction, () => this.#session.run(sql))).length > 0;
  }

  /** Returns a function that returns a deletion's outcome. */
  async #findWhy(left: readonly Requested[]): Promise<(one: Requested) => Outcome> {
    const tokens = toArrayLiteral([...new Set(left.flatMap(({ doubts }) => doubts))]);
    const rows = await this.#tables.findWhy(this.#session, left, tokens);
    const existing = new Set(rows.filter(([, , , token]) => token === null).map(([id]) => id));
    const tokensOf = Map.groupBy(rows, ([id]) => id);
    const byKey = Map.groupBy(rows, ([, key]) => key);
    return ({ id, call, doubts }) => {
      const plant = String(id);
      const used = call.idempotencyKey === undefined ? [] : (byKey.get(call.idempotencyKey) ?? []);
      const own = used.find(([usedFor]) => usedFor === plant);
      if (own !== undefined || (used.length > 0 && !this.#tables.isDistributed))
        return own?.[2] === call.subject || doubts.includes(own?.[3] ?? "") ? "deleted" : "key-reused";
      if (existing.has(plant)) return "locked";
      const isOwn = tokensOf.get(plant)?.some(([, , , token]) => doubts.includes(token ?? ""));
      return isOwn === true ? "deleted" : "absent";
    };
  }
}

/** Only the first deletion of each plant and of each key is sent. The others are `locked` or `absent` afterwards. */
function firstOfEach(batch: readonly Requested[]): ReadonlyMap<bigint, Requested> {
  const [first, keys] = [new Map<bigint, Requested>(), new Set<string>()];
  for (const one of batch) {
    const { idempotencyKey: key } = one.call;
    if (first.has(one.id) || (key !== undefined && keys.has(key))) continue;
    if (key !== undefined) keys.add(key);
    first.set(one.id, one);
  }
  return first;
}
