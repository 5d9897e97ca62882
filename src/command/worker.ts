import type { MetricFamily, ServerProblems } from "../server/index.ts";

/** A message from the supervisor to a worker. */
export type WorkerOrder = "drain" | "reload" | "report";

/**
 * A message from a worker to the supervisor: its port when it listens, then its metrics and problems when requested.
 */
export interface WorkerReport {
  readonly port?: number;
  readonly metrics?: readonly MetricFamily[];
  readonly problems?: ServerProblems;
}

/** The environment variable with which `serve` runs as a worker. */
export const workerVariable = "PLANTSTORE_WORKER";

/** A worker's connection to its supervisor. */
export interface SupervisorChannel {
  /** Reports that this worker listens, or its metrics and problems. */
  readonly report: (report: WorkerReport) => void;
  /** Registers a handler for the supervisor's orders other than "drain". */
  readonly onOrder: (order: Exclude<WorkerOrder, "drain">, handler: () => void) => void;
  /** Resolves when this worker must shut down, because the supervisor has sent the order or has exited. */
  readonly stop: Promise<"drain">;
  /** Closes the connection, which would otherwise keep the process alive. */
  readonly disconnect: () => void;
}

/**
 * Returns this process's connection to its supervisor. The process ignores signals from then on.
 *
 * Ctrl-C and service managers signal every process in a group, including the supervisor, which then sends its workers
 * the order to drain. If a worker also handled the signal, it would count as a second stop request, and the worker
 * would exit immediately.
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
