import { setTimeout as sleep } from "node:timers/promises";
import { backoffMs } from "./backoff.ts";
import type { Session } from "./session.ts";
import { sqlStateOf } from "./sql-state.ts";

/** How long the work of an operator's command is repeated, in milliseconds from its first fault. */
export const repeatForMs = 10_000;

// The transaction could not be serialised, or was the victim of a deadlock: it was rolled back because of others.
const rolledBack: ReadonlySet<string | undefined> = new Set(["40001", "40P01"]);

/**
 * Runs the work of an operator's command, and repeats it if the server rolls it back because of concurrent
 * transactions, or does not know whether it has committed, for ten seconds from the first fault. Distributed engines do
 * so at any statement, the COMMIT included.
 *
 * @param work - leaves nothing open on the session, and changes nothing when it is repeated after it was done
 */
export async function repeatWhileRefused<Result>(session: Session, work: () => Promise<Result>): Promise<Result> {
  let endMs: number | undefined;
  for (let tries = 0; ; tries++) {
    try {
      return await work();
    } catch (fault) {
      // Rolls back.
      session.discard();
      endMs ??= performance.now() + repeatForMs;
      const mayHelp = rolledBack.has(sqlStateOf(fault)) || isOutcomeUnknown(fault);
      if (!mayHelp || performance.now() >= endMs) throw fault;
    }
    await sleep(backoffMs(tries));
  }
}

/** Returns whether the server says that it does not know whether a statement was committed. */
export function isOutcomeUnknown(fault: unknown): boolean {
  return sqlStateOf(fault) === "40003";
}
