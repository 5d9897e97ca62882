import type { MetricFamily } from "../server/index.ts";

/** A message of the supervisor to a worker. */
export type WorkerOrder = "drain" | "reload" | "report-metrics";

/** A message of a worker to the supervisor: first that it listens, then its metrics whenever it is asked for them. */
export interface WorkerReport {
  readonly port?: number;
  readonly metrics?: readonly MetricFamily[];
}

/** The variable that turns `serve` into a worker. */
export const workerVariable = "PLANTSTORE_WORKER";

/** The connection of a worker to its supervisor. */
export interface SupervisorChannel {
  /** Reports that this worker listens, or its metrics. */
  readonly report: (report: WorkerReport) => void;
  /** Registers what to do when the supervisor gives an order other than to end. */
  readonly onOrder: (order: Exclude<WorkerOrder, "drain">, obey: () => void) => void;
  /** Resolves when this worker is to shut down: the supervisor says so, or is gone. */
  readonly stop: Promise<"drain">;
  /** Closes the connection, which would keep the process alive. */
  readonly leave: () => void;
}

/**
 * Returns the connection of this process to its supervisor; from then on signals do not end the process.
 *
 * Ctrl-C and service managers send signals to every process of a group, including the supervisor, which then tells its
 * workers to drain. A signal to a worker would count as the second one, which cuts the drain short.
 */
export function connectToSupervisor(): SupervisorChannel {
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => undefined);
  return {
    report: (report) => void process.send?.(report),
    onOrder: (expected, obey) => {
      process.on("message", (order: WorkerOrder) => {
        if (order === expected) obey();
      });
    },
    stop: new Promise((resolve) => {
      process.once("disconnect", () => resolve("drain"));
      process.on("message", (order: WorkerOrder) => {
        if (order === "drain") resolve(order);
      });
    }),
    leave: () => {
      if (process.connected) process.disconnect?.();
    },
  };
}
