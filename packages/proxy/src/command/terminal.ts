import { LineOutput } from "@plantstore/telemetry/logs";

/** A command's output. */
export interface Output {
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

/** A long-running command's output, and the signals that it receives. */
export interface Terminal extends Output {
  /**
   * Resolves at the first SIGTERM or SIGINT. A second signal exits the process immediately, unless it is the same
   * signal within {@link duplicateSignalMs}.
   */
  stopRequested(): Promise<unknown>;
  /** Calls a function on each SIGHUP, and immediately if one was received before. */
  readonly onHangup: (reload: () => void) => void;
}

/**
 * Milliseconds within which a repeated signal is a duplicate. On Ctrl-C, the terminal sends SIGINT, and npx forwards it
 * too.
 */
const duplicateSignalMs = 1_000;

/**
 * Returns this process's terminal. Lines are dropped while 4 MiB are unread. Adds listeners for SIGTERM and SIGINT only
 * when they are requested.
 */
export function processTerminal(onHangup: Terminal["onHangup"]): Terminal {
  const output = new LineOutput(process.stdout, (lines) => `${lines} lines dropped: they were not read fast enough\n`);
  return {
    print: (text) => output.write(`${text}\n`),
    printError: (text) => void process.stderr.write(`${text}\n`),
    stopRequested: () =>
      new Promise((resolve) => {
        let first: { readonly signal: NodeJS.Signals; readonly atMs: number } | undefined;
        const stop = (signal: NodeJS.Signals): void => {
          const nowMs = performance.now();
          if (first === undefined) {
            first = { signal, atMs: nowMs };
            return resolve(undefined);
          }
          // A second signal stops the process without draining.
          if (signal !== first.signal || nowMs - first.atMs >= duplicateSignalMs) process.exit(1);
        };
        for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
      }),
    onHangup,
  };
}
