import type { MetricFamily, ServerProblems } from "../server/index.ts";

/** A message from the supervisor to a worker. */
export type WorkerOrder = "drain" | "reload" | "report";

/**
 * A message from a worker to the supervisor. A worker sends its port when it listens. A worker sends its metrics and
 * problems when the supervisor orders a report.
 */
export interface WorkerReport {
  readonly port?: number;
  readonly metrics?: readonly MetricFamily[];
  readonly problems?: ServerProblems;
}

/** The environment variable that makes `serve` run as a worker. */
export const workerVariable = "PLANTSTORE_WORKER";

/** A worker's connection to its supervisor. */
export interface SupervisorChannel {
  /** Sends a report to the supervisor. */
  readonly report: (report: WorkerReport) => void;
  /** Registers a handler for orders from the supervisor. "drain" has no handler, see {@link stop}. */
  readonly onOrder: (order: Exclude<WorkerOrder, "drain">, handler: () => void) => void;
  /** Resolves when this worker must shut down. The supervisor has sent "drain", or has exited. */
  readonly stop: Promise<"drain">;
  /** Closes the connection to the supervisor. An open connection keeps the process alive. */
  readonly disconnect: () => void;
}

/**
 * Returns this process's connection to its supervisor. After this call, the process ignores signals.
 *
 * Ctrl-C and service managers signal every process in a group. The supervisor gets the signal too, and sends "drain" to
 * its workers. If a worker also handled the signal, "drain" would count as a second stop request, and the worker would
 * exit immediately.
 */
export function connectToSupervisor(): SupervisorChannel {
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => undefined);
  return {
    report: (report) => void process.send?.(report),
    onOrder: (expected, handler) => {
      process.on("message", (order: WorkerOrder) => {
        if (order === expected) handler();
      });
    },
    stop: new Promise((resolve) => {
      process.once("disconnect", () => resolve("drain"));
      process.on("message", (order: WorkerOrder) => {
        if (order === "drain") resolve(order);
      });
    }),
    disconnect: () => {
      if (process.connected) process.disconnect?.();
    },
  };
}
