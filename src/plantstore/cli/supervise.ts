import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type Configuration, type openLog, type PlantErrorCode, serveMetrics } from "../server/index.ts";
import { exitCode } from "./command.ts";
import { firstStopSignal } from "./stop-signals.ts";
import { type WorkerOrder, workerPortVariable, type WorkerReport } from "./worker.ts";
import { collectFromWorkers } from "./worker-metrics.ts";

/** Options of {@link superviseWorkers}. */
export interface WorkersOptions {
  readonly count: number;
  /** The port that the workers share; 0 for a free one. */
  readonly port: number;
  /** Where the metrics of all workers are served. */
  readonly adminAddress: Configuration["adminAddress"];
  /** The log of replaced workers. */
  readonly log: Pick<ReturnType<typeof openLog>, "info" | "warn">;
}

/** The setting of Linux (5.14 or later) that hands the connections that wait for a process to others on its port. */
const migrateSetting = "net.ipv4.tcp_migrate_req";

/** Returns whether the connections that a worker has not accepted survive it. */
function queuesMigrate(): boolean {
  try {
    return readFileSync(`/proc/sys/${migrateSetting.replaceAll(".", "/")}`, "utf8").trim() === "1";
  } catch {
    // An older kernel, or another system.
    return false;
  }
}

/** Milliseconds before a worker is replaced: soon enough after a crash, slow enough when workers cannot start. */
const replaceAfterMs = 500;

/**
 * Serves with several processes that share a port (SO_REUSEPORT: the kernel distributes connections).
 *
 * A worker that ends is replaced. If the first one cannot start, neither can the others, and its exit code is returned.
 * A stop signal drains all workers, after which this resolves to 0; a second one ends all of them at once.
 */
export async function superviseWorkers({ count, port, adminAddress, log }: WorkersOptions): Promise<number> {
  /** The workers by place: one that replaces another takes its place, and continues its metrics. */
  const workers = new Map<number, ChildProcess>();
  // Before there are workers, because they would outlive a failure to listen here.
  await using opened = new AsyncDisposableStack();
  if (adminAddress !== undefined) {
    // One question to the workers at a time, however many ask for metrics.
    let collecting: ReturnType<typeof collectFromWorkers> | undefined;
    const collect = (): ReturnType<typeof collectFromWorkers> =>
      (collecting ??= collectFromWorkers(workers).finally(() => (collecting = undefined)));
    opened.use(await serveMetrics(adminAddress, collect, log));
  }
  if (!queuesMigrate()) log.warn({ sysctl: migrateSetting }, "the connections that wait for a worker end with it");
  const stopped = firstStopSignal(() => workers.forEach((worker) => worker.kill("SIGKILL")));
  let stopping = false;
  let sharedPort: number | undefined;

  function start(place: number): ChildProcess {
    const env = { ...process.env, [workerPortVariable]: String(sharedPort ?? port) };
    const worker = fork(process.argv[1] ?? "", process.argv.slice(2), { env });
    workers.set(place, worker);
    worker.once("exit", (code, signal) => {
      workers.delete(place);
      if (sharedPort === undefined || stopping) return;
      const errorCode: PlantErrorCode = "ERR_WORKER_ENDED";
      log.warn({ errorCode, pid: worker.pid, cause: code ?? signal }, "a worker ended and is replaced");
      setTimeout(() => {
        if (!stopping) start(place);
      }, replaceAfterMs);
    });
    return worker;
  }

  const first = start(1);
  sharedPort = await listeningPort(first);
  if (sharedPort === undefined) return first.exitCode ?? exitCode.failure;
  for (let place = 2; place <= count; place++) start(place);
  process.on("SIGHUP", () => tell(workers.values(), "reload"));
  await stopped;
  stopping = true;
  const ended = [...workers.values()].map((worker) => once(worker, "exit"));
  tell(workers.values(), "drain");
  await Promise.all(ended);
  return exitCode.ok;
}

/** Resolves to the port once a worker listens, or to `undefined` if it ends first. */
function listeningPort(worker: ChildProcess): Promise<number | undefined> {
  return new Promise((resolve) => {
    worker.once("message", ({ port }: WorkerReport) => resolve(port));
    worker.once("exit", () => resolve(undefined));
  });
}

function tell(workers: Iterable<ChildProcess>, order: WorkerOrder): void {
  for (const worker of workers) {
    // An error is ignored: a worker that is about to end need not be told.
    if (worker.connected) worker.send(order, () => undefined);
  }
}
