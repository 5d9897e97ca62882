import { setTimeout as sleep } from "node:timers/promises";
import { sqlStateOf, verdictOn } from "./fault-table.ts";
import { backoffMs } from "./run-batch.ts";
import type { Session } from "./session.ts";

/** How long the work of an operator's command is repeated, in milliseconds from its first fault. */
export const repeatForMs = 10_000;

/**
 * Runs the work of an operator's command, and repeats it if the server rolls it back because of concurrent
 * transactions, or does not know whether it has committed, for ten seconds from the first fault. Distributed engines do
 * so at any statement, the COMMIT included.
 *
 * @param work - leaves nothing open on the session, and changes nothing when it is repeated after it was done
 */
export async function repeatWhileRefused<Result>(session: Session, work: () => Promise<Result>): Promise<Result> {
  let patience: AbortSignal | undefined;
  for (let tries = 0; ; tries++) {
    try {
      return await work();
    } catch (fault) {
      // Rolls back.
      session.discard();
      patience ??= AbortSignal.timeout(repeatForMs);
      if (patience.aborted || (verdictOn(fault) !== "repeat" && !isOutcomeUnknown(fault))) throw fault;
    }
    await sleep(backoffMs(tries));
  }
}

/** Returns whether the server says that it does not know whether a statement was committed. */
export function isOutcomeUnknown(fault: unknown): boolean {
  return sqlStateOf(fault) === "40003";
}
