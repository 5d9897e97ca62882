import type { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../contract/store-health.ts";
import { checkpointProblemOf } from "./problem.ts";

// Minimum number of frames in the log for a checkpoint after a commit (wal_autocheckpoint in sqlite.org/pragma.html).
const checkpointedFrames = 1_000;

/** Checkpoints have stalled if no frame was copied for this time, in milliseconds. Six times the check interval. */
export const stalledMs = 60_000;

const blocked = "another connection, such as a long export, reads older content, or holds the lock for checkpoints";

/** Why checkpoints have stalled. `problem` is set once the disk has failed for {@link stalledMs}. */
interface Stall {
  readonly reason: string;
  readonly problem?: StoreProblem;
}

/**
 * Prepares a function that copies the write-ahead log into the file at `nowMs`, a `performance.now()` time, and returns
 * why checkpoints have stalled, if they have. If the checkpoint after a commit fails, SQLite does not report an error.
 * Commits still succeed, but the log grows until the disk is full.
 */
export function prepareCheckpoint(db: DatabaseSync): (nowMs: number) => Stall | undefined {
  const checkpoint = db.prepare("PRAGMA wal_checkpoint(PASSIVE)");
  let copied: unknown;
  let progressMs: number | undefined;
  let failingSinceMs: number | undefined;
  return (nowMs) => {
    progressMs ??= nowMs;
    let stall: Stall = { reason: blocked };
    try {
      const { log, checkpointed } = checkpoint.get() ?? {};
      // Both numbers of frames are -1 while another connection holds the lock for checkpoints.
      if (log !== -1n) {
        failingSinceMs = undefined;
        const isShort = Number(log) - Number(checkpointed) < checkpointedFrames;
        if (isShort || checkpointed !== copied) progressMs = nowMs;
        copied = checkpointed;
      }
    } catch (fault) {
      failingSinceMs ??= nowMs;
      const problem = checkpointProblemOf(fault);
      stall = { reason: problem.text, ...(nowMs - failingSinceMs >= stalledMs && { problem }) };
    }
    return nowMs - progressMs >= stalledMs ? stall : undefined;
  };
}
