import type { Readiness } from "@plantstore/gateway/health";
import type { LogErrorCode } from "./error-code.ts";
import type { Log } from "./log.ts";

/** Milliseconds between two checks. No store problem is missed, because each lasts at least a second. */
const checkIntervalMs = 750;

/**
 * Logs every readiness change. When a part of the server becomes unready, a line has the cause. When the part is ready
 * again, a line has the duration. The two lines are warnings, so that no log level shows only one of them.
 *
 * @returns a function that stops logging
 */
export function logReadiness(readiness: Readiness, log: Pick<Log, "warn">): () => void {
  const failing = new Map<string, { readonly problem: string; readonly sinceMs: number }>();

  const check = (): void => {
    const problems = readiness.problems();
    for (const [part, problem] of problems) {
      if (failing.has(part)) continue;
      failing.set(part, { problem, sinceMs: performance.now() });
      const errorCode: LogErrorCode = "ERR_NOT_READY";
      log.warn({ errorCode, part, problem }, "not ready");
    }
    for (const [part, { problem, sinceMs }] of failing) {
      if (problems.has(part)) continue;
      failing.delete(part);
      log.warn({ part, problem, lastedMs: Math.round(performance.now() - sinceMs) }, "ready again");
    }
  };

  const timer = setInterval(check, checkIntervalMs).unref();
  return () => clearInterval(timer);
}
