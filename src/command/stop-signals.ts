import { exitCode } from "./command.ts";

/**
 * Milliseconds within which a repeated signal counts as the same request to stop.
 *
 * A terminal (Ctrl-C) and a service manager signal every process of a group, and npm, which is in that group, also
 * forwards its own signal to the script that it runs. The server then receives the signal twice.
 */
const sameRequestMs = 1_000;

/**
 * Waits for SIGTERM or SIGINT and resolves at the first one. A second signal skips the drain and exits the process
 * immediately with exit code 1; the same signal within {@link sameRequestMs} is ignored.
 *
 * @param onSecondSignal - called just before that exit; must be synchronous
 */
export function firstStopSignal(onSecondSignal: () => void = () => undefined): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: { readonly signal: NodeJS.Signals; readonly atMs: number } | undefined;
    const stop = (signal: NodeJS.Signals): void => {
      if (first === undefined) {
        first = { signal, atMs: performance.now() };
        resolve(signal);
        return;
      }
      if (signal === first.signal && performance.now() - first.atMs < sameRequestMs) return;
      onSecondSignal();
      process.exit(exitCode.failure);
    };
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
  });
}
