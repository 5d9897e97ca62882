import type { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../contract/store-health.ts";
import { elapsedMsSince, type OnUpkeep } from "../contract/upkeep.ts";
import { checkpointProblemOf } from "./problem.ts";
import type { WalIndex } from "./wal-index.ts";

// From this many frames, SQLite runs a checkpoint after each commit (sqlite.org/pragma.html, wal_autocheckpoint).
const checkpointedFrames = 1_000;

/** How long no frame is copied before checkpoints count as stalled, in milliseconds: six times as long as between checks. */
export const stalledMs = 60_000;

const blocked = "another connection, such as a long export, reads older content, or holds the lock for checkpoints";

/**
 * Detects that checkpoints no longer copy the write-ahead log into the file. SQLite does not report an error in the
 * checkpoint after a commit. Commits succeed, because they need only the log, which grows until its disk is full.
 */
export class CheckpointWatch {
  readonly #db: DatabaseSync;
  readonly #readIndex: () => WalIndex | undefined;
  readonly #onUpkeep: OnUpkeep;
  /** A checkpoint's last progress: the log and its copied frames, and when a check found them. */
  #progress = { salts: 0n, backfilled: 0, atMs: Number.NEGATIVE_INFINITY };
  /** The reported stall: its reason, and when it was reported. */
  #stall: { readonly problem: string; readonly atMs: number } | undefined;

  constructor(db: DatabaseSync, readIndex: () => WalIndex | undefined, onUpkeep: OnUpkeep) {
    this.#db = db;
    this.#readIndex = readIndex;
    this.#onUpkeep = onUpkeep;
  }

  /** Whether no frame was copied for {@link stalledMs}, at the last check. */
  get isStalled(): boolean {
    return this.#stall !== undefined;
  }

  /**
   * Checks the progress at a time on the `performance.now()` clock. If there was none for {@link stalledMs}, runs a
   * checkpoint, and returns its error, if any. A reader that blocks checkpoints is reported as upkeep only.
   */
  findProblem(nowMs: number): StoreProblem | undefined {
    if (!this.#hasStalled(nowMs)) {
      this.#report(undefined);
      return undefined;
    }
    try {
      this.#db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
    } catch (fault) {
      const problem = checkpointProblemOf(fault);
      this.#report(problem.text);
      return problem;
    }
    this.#report(this.#hasStalled(nowMs) ? blocked : undefined);
    return undefined;
  }

  #hasStalled(nowMs: number): boolean {
    const index = this.#readIndex();
    if (index === undefined) return this.isStalled;
    const { salts, frames, backfilled } = index;
    const isBehind = frames - backfilled >= checkpointedFrames;
    if (!isBehind || salts !== this.#progress.salts || backfilled !== this.#progress.backfilled) {
      this.#progress = { salts, backfilled, atMs: nowMs };
    }
    return nowMs - this.#progress.atMs >= stalledMs;
  }

  /** Reports a stall with a new reason, and its end. */
  #report(problem: string | undefined): void {
    const known = this.#stall;
    if (problem === known?.problem) return;
    if (problem !== undefined) {
      this.#stall = { problem, atMs: known?.atMs ?? performance.now() };
      this.#onUpkeep({ kind: "checkpoints-stalled", problem });
    } else if (known !== undefined) {
      this.#stall = undefined;
      this.#onUpkeep({ kind: "checkpoints-resumed", lastedMs: elapsedMsSince(known.atMs) });
    }
  }
}
