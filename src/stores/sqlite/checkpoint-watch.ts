import type { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../contract/store-health.ts";
import { elapsedMsSince, type OnUpkeep } from "../contract/store-options.ts";
import { checkpointProblemOf } from "./problem.ts";
import type { WalIndex } from "./file-identity.ts";

// Minimum number of frames in the log for a checkpoint after a commit (wal_autocheckpoint in sqlite.org/pragma.html).
const checkpointedFrames = 1_000;

/** Checkpoints have stalled if no frame was copied for this time, in milliseconds. Six times the check interval. */
export const stalledMs = 60_000;

const blocked = "another connection, such as a long export, reads older content, or holds the lock for checkpoints";

/**
 * Detects that checkpoints no longer copy the write-ahead log into the file. If the checkpoint after a commit fails,
 * SQLite does not report an error. Commits still succeed, but the log grows until the disk is full.
 */
export class CheckpointWatch {
  readonly #db: DatabaseSync;
  readonly #readIndex: () => WalIndex | undefined;
  readonly #onUpkeep: OnUpkeep;
  /** The last progress of checkpoints: the log's salts, the number of copied frames, and when a check found them. */
  #progress = { salts: 0n, backfilled: 0, atMs: Number.NEGATIVE_INFINITY };
  /** The reason for the current stall, and when the stall was first reported. Undefined without a stall. */
  #stall: { readonly problem: string; readonly atMs: number } | undefined;

  constructor(db: DatabaseSync, readIndex: () => WalIndex | undefined, onUpkeep: OnUpkeep) {
    this.#db = db;
    this.#readIndex = readIndex;
    this.#onUpkeep = onUpkeep;
  }

  /** Whether the last check found that no frame was copied for {@link stalledMs}. */
  get isStalled(): boolean {
    return this.#stall !== undefined;
  }

  /**
   * Checks the progress of checkpoints at `nowMs`, a `performance.now()` time. Without progress for {@link stalledMs},
   * runs a checkpoint, and returns the checkpoint's error, if any. Only reports a blocking reader.
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

  #report(problem: string | undefined): void {
    const known = this.#stall;
    if (problem === known?.problem) return;
    this.#stall = problem === undefined ? undefined : { problem, atMs: known?.atMs ?? performance.now() };
    if (problem !== undefined) this.#onUpkeep({ kind: "checkpoints-stalled", problem });
    else if (known !== undefined) this.#onUpkeep({ kind: "checkpoints-resumed", lastedMs: elapsedMsSince(known.atMs) });
  }
}
