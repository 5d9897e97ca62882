import type { MetricFamily, ServerProblems } from "../server/index.ts";

/** A message from the supervisor to a worker. */
export type WorkerOrder = "drain" | "reload" | "report";

/** A worker's message to the supervisor: its port when it listens, and its metrics and problems when asked. */
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
  /** Registers a handler for orders from the supervisor. "drain" resolves {@link stop} instead. */
  readonly onOrder: (order: Exclude<WorkerOrder, "drain">, handler: () => void) => void;
  /** Resolves when this worker must shut down. The supervisor has sent "drain", or has exited. */
  readonly stop: Promise<"drain">;
  /** Closes the connection to the supervisor. An open connection keeps the process alive. */
  readonly disconnect: () => void;
}

/**
 * Returns this process's connection to its supervisor. After this call, the process ignores signals.
 *
 * Ctrl-C and service managers signal every process in a group, and the supervisor then sends "drain" to its workers. If
 * a worker handled the signal too, "drain" would be a second stop request.
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
