/** What the supervisor tells a worker. */
export type WorkerOrder = "drain" | "reload";

/** What a worker tells its supervisor once it listens. */
export interface WorkerReport {
  readonly port: number;
}

/** The variable that makes `serve` a worker, and says which port the workers share. */
export const workerPortVariable = "PLANTSTORE_WORKER_PORT";

/** The near end of a worker's line to its supervisor. */
export interface Supervisor {
  /** Tells that this worker listens. */
  readonly report: (report: WorkerReport) => void;
  /** Calls back when the supervisor wants files read again. */
  readonly onReload: (reload: () => void) => void;
  /** Resolves when this worker is to end: it is told so, or the supervisor is gone. */
  readonly stop: Promise<void>;
  /** Lets go of the line, which otherwise keeps the process alive. */
  readonly leave: () => void;
}

/**
 * Returns this process's line to its supervisor; from here on signals do not end the process.
 *
 * Ctrl-C and service managers signal every process of a group, the supervisor among them, and it tells its
 * workers to drain: a signal of their own would be the second one, which cuts the drain.
 */
export function connectToSupervisor(): Supervisor {
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
