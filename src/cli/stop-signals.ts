import { exitCode } from "./command.ts";

/**
 * Waits for SIGTERM or SIGINT and resolves at the first one. A second one ends the process at once with exit code 1,
 * because its sender has lost patience with the drain.
 *
 * @param atSecond - called just before that end; must be quick
 */
export function firstStopSignal(atSecond: () => void = () => undefined): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const end = (): never => {
      atSecond();
      return process.exit(exitCode.failure);
    };
    const stop = (signal: NodeJS.Signals): void => {
      for (const name of ["SIGTERM", "SIGINT"] as const) {
        process.off(name, stop);
        process.on(name, end);
      }
      resolve(signal);
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
  });
}
