import { setTimeout as sleep } from "node:timers/promises";
import { backoffMs } from "./backoff.ts";
import type { Session } from "./session.ts";
import { sqlStateOf } from "./sql-state.ts";

/** How long the work of an operator's command is retried, in milliseconds from its first error. */
export const retryForMs = 10_000;

// serialization_failure and deadlock_detected: the transaction was rolled back because of concurrent ones.
const rolledBack: ReadonlySet<string | undefined> = new Set(["40001", "40P01"]);

/**
 * Runs the work of an operator's command. For ten seconds from the first error, retries it if the server rolls it back
 * because of concurrent transactions, or reports that the outcome is unknown. Distributed engines may report either at
 * any statement, including the COMMIT.
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

/** Whether the outcome of a commit is unknown. */
export function isOutcomeUnknown(fault: unknown): boolean {
  return sqlStateOf(fault) === "40003";
}
