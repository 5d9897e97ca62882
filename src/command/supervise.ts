import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { firstStopSignal } from "@protoport/command-line";
import { type Configuration, ConfigurationError, openLog, type PlantErrorCode, serveAdmin } from "../server/index.ts";
import { exitCode, type Terminal } from "./command.ts";
import { type WorkerOrder, workerVariable } from "./worker.ts";
import { collectFromWorkers, findProblemsOfWorkers } from "./worker-metrics.ts";

// Delay before an exited worker is replaced, in milliseconds. Avoids a busy loop if workers cannot start.
const replaceAfterMs = 500;

/**
 * Serves with several worker processes, to which node:cluster passes connections in turn.
 *
 * A worker that exits is replaced. If the first worker cannot start, other workers could not start either, so the
 * promise resolves to the first worker's exit code. A stop signal drains all workers, and the promise then resolves to
 * 0. A second signal kills all workers immediately.
 *
 * Rejects if the metrics cannot be served or the system cannot start the first worker's process, and with
 * ConfigurationError in another program's cluster. If another process cannot be started, tries again later.
 */
export async function superviseWorkers(
  configuration: Pick<Configuration, "workers" | "adminAddress" | "logLevel">,
  onHangup: Terminal["onHangup"],
): Promise<number> {
  if (!cluster.isPrimary)
    throw new ConfigurationError(["PLANTSTORE_WORKERS must be 1 in a cluster of Node.js, such as that of pm2 -i"]);
  const { adminAddress } = configuration;
  const log = openLog(configuration.logLevel);
  const workers = new Workers();
  await using opened = new AsyncDisposableStack();
  if (adminAddress !== undefined) {
    // Concurrent scrapes share one collection.
    let collecting: ReturnType<typeof collectFromWorkers> | undefined;
    const collect = (): ReturnType<typeof collectFromWorkers> =>
      (collecting ??= collectFromWorkers(workers.current).finally(() => (collecting = undefined)));
    const problems = (): ReturnType<typeof findProblemsOfWorkers> => findProblemsOfWorkers(workers.current);
    opened.use(await serveAdmin(adminAddress, { collect, problems }, log));
  }
  const stopped = firstStopSignal(() => workers.send("kill"));
  const { promise: listening, resolve } = Promise.withResolvers<void>();
  const first = workers.run(1, () => resolve());
  const cause = await Promise.race([listening, first]);
  if (cause !== undefined) return typeof cause === "number" ? cause : exitCode.failure;
  // Reloads only current workers, because later workers read the new files when they start.
  onHangup(() => workers.send("reload"));
  const kept = [workers.keep(1, first, log)];
  for (let slot = 2; slot <= configuration.workers; slot++) kept.push(workers.keep(slot, workers.run(slot), log));
  await stopped;
  workers.isDraining = true;
  workers.send("drain");
  await Promise.all(kept);
  return exitCode.ok;
}

class Workers {
  /** The current workers, by slot. A replacement gets the same slot, so that the slot's metrics continue. */
  readonly current = new Map<number, ChildProcess>();
  isDraining = false;

  /** Runs a worker until it exits with the returned code or signal. Rejects if the system cannot start the process. */
  async run(slot: number, onListening: () => void = () => undefined): Promise<number | string | null> {
    const worker = cluster.fork({ [workerVariable]: "on" }).once("listening", onListening);
    this.current.set(slot, worker.process);
    try {
      const [code = null, signal = null]: (number | string | null)[] = await once(worker, "exit");
      return code ?? signal;
    } finally {
      this.current.delete(slot);
    }
  }

  /** Replaces a slot's worker each time it exits. Resolves after a worker has exited during the drain. */
  async keep(slot: number, running: Promise<number | string | null>, log: ReturnType<typeof openLog>): Promise<void> {
    for (let run = running; ; run = this.run(slot)) {
      const pid = this.current.get(slot)?.pid;
      const cause = await run.catch(String);
      if (this.isDraining) return;
      const what = pid === undefined ? "could not be started and is tried again" : "exited and is being replaced";
      log.warn({ errorCode: "ERR_WORKER_EXITED" satisfies PlantErrorCode, pid, cause }, `a worker ${what}`);
      await delay(replaceAfterMs);
      if (this.isDraining) return;
    }
  }

  send(order: WorkerOrder | "kill"): void {
    for (const worker of this.current.values()) {
      if (order === "kill") worker.kill("SIGKILL");
      // Ignores errors, because errors occur only if the worker is exiting.
      else if (worker.connected) worker.send(order, () => undefined);
    }
  }
}
