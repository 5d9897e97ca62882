import type { Output } from "../check/index.ts";

/** Where a command that goes on writes to, and what it is told. */
export interface Terminal extends Output {
  /** Resolves when the process is to end: at the first SIGTERM or SIGINT. A second one ends it at once. */
  stopped(): Promise<unknown>;
  /** Calls a function at each SIGHUP. */
  onHangup(reload: () => void): void;
}

/** Returns the terminal of this process. Nothing listens to signals before it is asked for them. */
export function processTerminal(): Terminal {
  return {
    print: (text) => void process.stdout.write(`${text}\n`),
    complain: (text) => void process.stderr.write(`${text}\n`),
    stopped: () =>
      new Promise((resolve) => {
        let isStopping = false;
        const stop = (): void => {
          // Its sender has lost patience with the drain.
          if (isStopping) process.exit(1);
          isStopping = true;
          resolve(undefined);
        };
        for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
      }),
    onHangup: (reload) => void process.on("SIGHUP", reload),
  };
}
