import type { MetricFamily } from "@protoport/telemetry/metrics";
import type { ServerProblems, StartedServer } from "../server/index.ts";

/** A message from the supervisor to a worker. */
export type WorkerOrder = "drain" | "reload" | "report";

/** A worker's response to "report". */
export interface WorkerReport {
  readonly metrics: readonly MetricFamily[];
  readonly problems: ServerProblems;
}

/** The environment variable that makes `serve` run as a worker. */
export const workerVariable = "PLANTSTORE_WORKER";

/**
 * Resolves when this worker must shut down, because the supervisor has sent "drain" or has exited. From now on, the
 * process ignores signals. Ctrl-C also signals the workers, for which "drain" would then be a second stop request.
 */
export function supervisorStop(): Promise<"drain"> {
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => undefined);
  const { worker } = process.getBuiltinModule("node:cluster");
  // Without this, node:cluster exits the process as soon as the supervisor has exited, while calls are running.
  if (worker !== undefined) worker.exitedAfterDisconnect = true;
  return new Promise((resolve) => {
    const stop = (): void => resolve("drain");
    process.once("disconnect", stop).on("message", (order: WorkerOrder) => order === "drain" && stop());
  });
}

/** Follows the supervisor's other orders, once the server listens. */
export function followOrders(server: Pick<StartedServer, "reload" | "collectMetrics" | "problems">): void {
  process.on("message", (order: WorkerOrder) => {
    if (order === "reload") void server.reload();
    if (order !== "report") return;
    process.send?.({ metrics: server.collectMetrics(), problems: server.problems() } satisfies WorkerReport);
  });
}
