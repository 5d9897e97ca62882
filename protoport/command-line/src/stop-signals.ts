/**
 * Milliseconds within which a repeated signal counts as the same request to stop.
 *
 * A terminal (Ctrl-C) and a service manager send a signal to every process in a group. npm, which is in the same group,
 * also forwards the signal to the script that it runs, so the server receives it twice.
 */
const sameRequestMs = 1_000;

/**
 * Resolves at the first SIGTERM or SIGINT. A second signal skips the drain and exits the process immediately with exit
 * code 1. If the same signal is repeated within {@link sameRequestMs}, the repetition is ignored.
 *
 * @param onSecondSignal - called just before the process exits because of a second signal. Must be synchronous
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
      process.exit(1);
    };
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
  });
}
