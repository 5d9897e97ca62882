import type { Readiness } from "@protoport/gateway/health";
import type { LogErrorCode } from "./error-code.ts";
import type { Log } from "./log.ts";

/** Milliseconds between two checks. Every store problem lasts at least 1 s, so no problem is missed. */
const checkIntervalMs = 750;

/**
 * Logs the cause when a component of the server becomes unready, and the duration when the component is ready again.
 * Both lines are warnings, so that every log level shows both or neither.
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
