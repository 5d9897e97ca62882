import { exitCode } from "./command.ts";

/**
 * Waits for SIGTERM or SIGINT and resolves at the first one. A second one ends the process at once with exit code 1,
 * because its sender has lost patience with the drain.
 *
 * @param atSecond - called just before that end; must be quick
 */
export function firstStopSignal(atSecond: () => void = () => undefined): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isStopping = false;
    const take = (signal: NodeJS.Signals): void => {
      if (isStopping) {
        atSecond();
        process.exit(exitCode.failure);
      }
      isStopping = true;
      resolve(signal);
    };
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, take);
  });
}
