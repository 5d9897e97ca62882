import type { Output } from "../check/index.ts";

/** Where a command that goes on writes to, and what it is told. */
export interface Terminal extends Output {
  /**
   * Resolves when the process is to end: at the first SIGTERM or SIGINT. A second one ends it at once, but for the same
   * signal within {@link sameRequestMs}.
   */
  stopped(): Promise<unknown>;
  /** Calls a function at each SIGHUP. */
  onHangup(reload: () => void): void;
}

/** Milliseconds in which a repeated signal is the same request: a terminal sends Ctrl-C, and npx forwards it. */
const sameRequestMs = 1_000;

/** Returns the terminal of this process. Nothing listens to signals before it is asked for them. */
export function processTerminal(): Terminal {
  return {
    print: (text) => void process.stdout.write(`${text}\n`),
    complain: (text) => void process.stderr.write(`${text}\n`),
    stopped: () =>
      new Promise((resolve) => {
        let first: { readonly signal: NodeJS.Signals; readonly atMs: number } | undefined;
        const stop = (signal: NodeJS.Signals): void => {
          const nowMs = performance.now();
          if (first === undefined) {
            first = { signal, atMs: nowMs };
            return resolve(undefined);
          }
          // Its sender has lost patience with the drain.
          if (signal !== first.signal || nowMs - first.atMs >= sameRequestMs) process.exit(1);
        };
        for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
      }),
    onHangup: (reload) => void process.on("SIGHUP", reload),
  };
}
