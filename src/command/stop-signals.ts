import { exitCode } from "./command.ts";

/**
 * Milliseconds in which a repeated signal is the same request to stop.
 *
 * A terminal (Ctrl-C) and a service manager signal every process of a group, and npm, which belongs to it, forwards its
 * own signal to the script that it runs: the server then receives two.
 */
const sameRequestMs = 1_000;

/**
 * Waits for SIGTERM or SIGINT and resolves at the first one. A second one exits the process immediately with exit code
 * 1, because its sender has lost patience with the drain; the same signal within {@link sameRequestMs} is ignored.
 *
 * @param atSecond - called just before that exit; must be quick
 */
export function firstStopSignal(atSecond: () => void = () => undefined): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: { readonly signal: NodeJS.Signals; readonly atMs: number } | undefined;
    const stop = (signal: NodeJS.Signals): void => {
      if (first === undefined) {
        first = { signal, atMs: performance.now() };
        resolve(signal);
        return;
      }
      if (signal === first.signal && performance.now() - first.atMs < sameRequestMs) return;
      atSecond();
      process.exit(exitCode.failure);
    };
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
  });
}
