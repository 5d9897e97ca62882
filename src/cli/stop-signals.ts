import { exitCode } from "./exit-code.ts";

/**
 * Waits for SIGTERM or SIGINT and resolves at the first one. A second one ends the process at once
 * with exit code 1: whoever sends it has lost patience with the drain.
 */
export function firstStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      for (const name of ["SIGTERM", "SIGINT"] as const) {
        process.off(name, stop);
        process.on(name, () => process.exit(exitCode.failure));
      }
      resolve(signal);
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
  });
}
