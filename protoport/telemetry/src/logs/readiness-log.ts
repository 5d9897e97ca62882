import type { Readiness } from "@protoport/gateway/health";
import type { LogErrorCode } from "./error-code.ts";
import type { Log } from "./log.ts";

/** Milliseconds between two checks. Every store problem lasts at least 1 s, so no problem is missed. */
const checkIntervalMs = 750;

/** Minimum milliseconds between two causes, so that alternating causes, such as of several addresses, do not fill the log. */
const causeIntervalMs = 10_000;

/**
 * Logs the cause when a component of the server becomes unready, a later cause that replaces it, and the duration when the
 * component is ready again. All lines are warnings, so that every log level shows all or none.
 *
 * @returns a function that stops logging
 */
export function logReadiness(readiness: Readiness, log: Pick<Log, "warn">): () => void {
  const failing = new Map<string, { readonly problem: string; readonly sinceMs: number; readonly loggedMs: number }>();

  const check = (): void => {
    const problems = readiness.problems();
    for (const [part, problem] of problems) {
      const nowMs = performance.now();
      const { problem: logged, sinceMs = nowMs, loggedMs = -Infinity } = failing.get(part) ?? {};
      if (logged === problem || nowMs - loggedMs < causeIntervalMs) continue;
      failing.set(part, { problem, sinceMs, loggedMs: nowMs });
      log.warn({ errorCode: "ERR_NOT_READY" satisfies LogErrorCode, part, problem }, "not ready");
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
