/** A message of the supervisor to a worker. */
export type WorkerOrder = "drain" | "reload";

/** The message of a worker to the supervisor once it listens. */
export interface WorkerReport {
  readonly port: number;
}

/** The variable that turns `serve` into a worker and names the shared port. */
export const workerPortVariable = "PLANTSTORE_WORKER_PORT";

/** The connection of a worker to its supervisor. */
export interface SupervisorChannel {
  /** Reports that this worker listens. */
  readonly report: (report: WorkerReport) => void;
  /** Registers the function that reads files again when the supervisor says so. */
  readonly onReload: (reload: () => void) => void;
  /** Resolves when this worker is to shut down: the supervisor says so, or is gone. */
  readonly stop: Promise<void>;
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
    onReload: (reload) => {
      process.on("message", (order: WorkerOrder) => {
        if (order === "reload") reload();
      });
    },
    stop: new Promise((resolve) => {
      process.once("disconnect", resolve);
      process.on("message", (order: WorkerOrder) => {
        if (order === "drain") resolve();
      });
    }),
    leave: () => {
      if (process.connected) process.disconnect?.();
    },
  };
}
