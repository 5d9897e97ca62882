import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "./session.ts";
import { sqlStateOf } from "./sql-state.ts";

// In milliseconds. Short at first, so that a deadlock's victim is retried almost immediately. Longer later, so that a
// starting server is not flooded.
const backoffMsFirst = 5;
const backoffMsMax = 1_000;

/**
 * Returns the wait before the next attempt, in milliseconds. Uses full jitter, so that replicas that failed at the same
 * time do not retry at the same time.
 */
export function backoffMs(attempts: number): number {
  return Math.random() * Math.min(backoffMsMax, backoffMsFirst * 2 ** attempts);
}

/** How long an operator's command retries its work, in milliseconds from the first error. */
export const retryForMs = 10_000;

// serialization_failure and deadlock_detected: the transaction was rolled back because of concurrent ones.
const rolledBack: ReadonlySet<string | undefined> = new Set(["40001", "40P01"]);

/**
 * Runs the work of an operator's command. For {@link retryForMs} from the first error, retries it if the server rolls
 * it back, or reports that the outcome is unknown, which distributed engines may do at any statement.
 *
 * @param work - must leave no transaction open, and must be idempotent
 */
export async function retryTransientErrors<Result>(session: Session, work: () => Promise<Result>): Promise<Result> {
  let endMs: number | undefined;
  for (let attempts = 0; ; attempts++) {
    try {
      return await work();
    } catch (fault) {
      // Closing the connection rolls back.
      session.discard();
      endMs ??= performance.now() + retryForMs;
      const isTransient = rolledBack.has(sqlStateOf(fault)) || isOutcomeUnknown(fault);
      if (!isTransient || performance.now() >= endMs) throw fault;
    }
    await sleep(backoffMs(attempts));
  }
}

/** Whether a commit's outcome is unknown. */
export function isOutcomeUnknown(fault: unknown): boolean {
  return sqlStateOf(fault) === "40003";
}
