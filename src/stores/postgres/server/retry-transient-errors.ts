import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "./session.ts";
import { sqlStateOf } from "./sql-state.ts";

// Bounds of the backoff, in milliseconds. The lower bound suits a deadlock's victim, the upper bound a starting server.
const backoffMsFirst = 5;
const backoffMsMax = 1_000;

/** The wait before the next attempt, in milliseconds. Full jitter keeps replicas from retrying at the same time. */
export function backoffMs(attempts: number): number {
  return Math.random() * Math.min(backoffMsMax, backoffMsFirst * 2 ** attempts);
}

/** How long an operator's command retries after the first error, in milliseconds. */
export const retryForMs = 10_000;

/**
 * Runs `work` for an operator's command, and retries `work` after transient errors, for `forMs` after the first error.
 * By default, an error is transient if the server rolled a transaction back or reports an unknown outcome, which
 * distributed engines may do for any statement.
 *
 * @param work - must leave no transaction open, and must be idempotent
 */
export async function retryTransientErrors<Result>(
  session: Session,
  work: () => Promise<Result>,
  isTransient: (fault: unknown) => boolean = isRolledBackOrUnknown,
  forMs: number = retryForMs,
): Promise<Result> {
  let endMs: number | undefined;
  for (let attempts = 0; ; attempts++) {
    try {
      return await work();
    } catch (fault) {
      // Closing the connection rolls the transaction back.
      session.discard();
      endMs ??= performance.now() + forMs;
      if (!isTransient(fault) || performance.now() >= endMs) throw fault;
    }
    await sleep(backoffMs(attempts));
  }
}

// Concurrent transactions cause serialization_failure (40001) and deadlock_detected (40P01).
function isRolledBackOrUnknown(fault: unknown): boolean {
  return /^(?:40001|40P01)$/.test(sqlStateOf(fault) ?? "") || isOutcomeUnknown(fault);
}

/** Returns whether an error means that a commit's outcome is unknown. */
export function isOutcomeUnknown(fault: unknown): boolean {
  return sqlStateOf(fault) === "40003";
}
