import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { firstStopSignal } from "@protoport/command-line";
import type { MetricFamily } from "@protoport/telemetry/metrics";
import { openLog } from "@protoport/telemetry/logs";
import type { PlantErrorCode } from "../service/index.ts";
import { type Configuration, ConfigurationError, serveAdmin, type ServerProblems } from "../server/index.ts";
import { exitCode, type PlantTerminal } from "./command.ts";
import { type WorkerOrder, type WorkerReport, workerVariable } from "./worker.ts";

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
  onHangup: PlantTerminal["onHangup"],
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
  /** Each slot's newest worker, which may have exited. A replacement gets the slot, so that its metrics continue. */
  readonly current = new Map<number, ChildProcess>();
  isDraining = false;

  /** Runs a worker until it exits with the returned code or signal. Rejects if the system cannot start the process. */
  async run(slot: number, onListening: () => void = () => undefined): Promise<number | string | null> {
    const worker = cluster.fork({ [workerVariable]: "on" }).once("listening", () => {
      onListening();
      // An order that arrives before the worker waits for orders is lost.
      if (this.isDraining) worker.send("drain" satisfies WorkerOrder);
    });
    this.current.set(slot, worker.process);
    const [code = null, signal = null]: (number | string | null)[] = await once(worker, "exit");
    return code ?? signal;
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

/** Timeout for a worker's response, in milliseconds. Longer than event loop delays, shorter than scrape timeouts. */
const responseTimeoutMs = 2_000;

/**
 * Collects the metrics of all workers. Every series has the worker's slot as the attribute `worker`. Values are not
 * summed, because a counter's sum would decrease when a worker is replaced. An average would hide a stuck worker. A
 * worker that does not respond in time is omitted. `plantstore.workers` is the number of workers that responded.
 */
export async function collectFromWorkers(workers: ReadonlyMap<number, ChildProcess>): Promise<MetricFamily[]> {
  const numbers = new Map<string, NumberFamily>();
  const histograms = new Map<string, HistogramFamily>();
  let responses = 0;
  for (const [slot, report] of await requestReports(workers)) {
    responses += report === undefined ? 0 : 1;
    for (const family of report?.metrics ?? []) {
      if (family.kind === "histogram") addTo(histograms, family, slot);
      else addTo(numbers, family, slot);
    }
  }
  const description = "Worker processes that returned their metrics in time";
  const points = [{ attributes: {}, value: responses }];
  const count = { name: "plantstore.workers", unit: "{process}", description, kind: "gauge", points } as const;
  return [...numbers.values(), ...histograms.values(), count];
}

type HistogramFamily = Extract<MetricFamily, { kind: "histogram" }>;
type NumberFamily = Exclude<MetricFamily, HistogramFamily>;

/** Collects the problems of all workers. The name of each problem contains the worker's slot. */
export async function findProblemsOfWorkers(workers: ReadonlyMap<number, ChildProcess>): Promise<ServerProblems> {
  const found = (await requestReports(workers)).flatMap(([slot, report]) =>
    Object.entries(report?.problems ?? { process: "not running or not responding" }).map(
      ([part, problem]) => [`${part} of worker ${slot}`, problem] as const,
    ),
  );
  return Object.fromEntries(found);
}

/** Requests the workers' reports. A report is undefined if the worker exits or does not respond in time. */
function requestReports(workers: ReadonlyMap<number, ChildProcess>): Promise<[number, WorkerReport | undefined][]> {
  return Promise.all([...workers].map(async ([slot, worker]) => [slot, await requestReport(worker)]));
}

function requestReport(worker: ChildProcess): Promise<WorkerReport | undefined> {
  if (!worker.connected) return Promise.resolve(undefined);
  const { promise, resolve } = Promise.withResolvers<WorkerReport | undefined>();
  const cancel = (): void => resolve(undefined);
  const timer = setTimeout(cancel, responseTimeoutMs);
  worker.once("message", resolve).once("exit", cancel);
  worker.send("report" satisfies WorkerOrder, (error) => error && cancel());
  return promise.finally(() => {
    clearTimeout(timer);
    worker.off("message", resolve).off("exit", cancel);
  });
}

/** Adds a worker's series for a metric to the other workers' series. */
function addTo<Family extends { readonly name: string; readonly points: readonly { readonly attributes: object }[] }>(
  byName: Map<string, Family>,
  family: Family,
  worker: number,
): void {
  const points = family.points.map((point) => ({ ...point, attributes: { ...point.attributes, worker } }));
  byName.set(family.name, { ...family, points: [...(byName.get(family.name)?.points ?? []), ...points] });
}
