import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import {
  type BindOptions,
  type Configuration,
  type openLog,
  type PlantErrorCode,
  serveMetrics,
  shareConnections,
  type SharedPort,
} from "../server/index.ts";
import { exitCode } from "./command.ts";
import { firstStopSignal } from "./stop-signals.ts";
import { type WorkerOrder, type WorkerReport, workerVariable } from "./worker.ts";
import { collectFromWorkers } from "./worker-metrics.ts";

/** Options of {@link superviseWorkers}. */
export interface WorkersOptions {
  readonly count: number;
  /** Where to listen. */
  readonly at: BindOptions;
  /** Where the metrics of all workers are served. */
  readonly adminAddress: Configuration["adminAddress"];
  /** The HTTP that serves the metrics; that of the calls is a setting of the workers. */
  readonly httpEngine: Configuration["httpEngine"];
  /** The log of replaced workers. */
  readonly log: WorkersLog;
}

type WorkersLog = Pick<ReturnType<typeof openLog>, "info" | "warn">;

/** Milliseconds before a worker is replaced: soon enough after a crash, slow enough when workers cannot start. */
const replaceAfterMs = 500;

/**
 * Listens, and serves with several processes, each of which gets as many connections as the others.
 *
 * A worker that ends is replaced. If the first one cannot start, neither can the others, and its exit code is returned.
 * A stop signal drains all workers, after which this resolves to 0; a second one ends all of them at once.
 *
 * Rejects with the error of the system when it cannot listen.
 */
export async function superviseWorkers(options: WorkersOptions): Promise<number> {
  const { count, at, adminAddress, httpEngine, log } = options;
  // Before there are workers, because they would outlive a failure to listen here.
  await using opened = new AsyncDisposableStack();
  const current = new Map<number, ChildProcess>();
  if (adminAddress !== undefined) {
    // One question to the workers at a time, however many ask for metrics.
    let collecting: ReturnType<typeof collectFromWorkers> | undefined;
    const collect = (): ReturnType<typeof collectFromWorkers> =>
      (collecting ??= collectFromWorkers(current).finally(() => (collecting = undefined)));
    opened.use(await serveMetrics(adminAddress, collect, log, httpEngine));
  }
  // The successor of this process may listen before this one stops.
  const shared = await shareConnections({ ...at, reusePort: true });
  const workers = new Workers(current, shared, log);
  const stopped = firstStopSignal(() => workers.tell("kill"));
  // Before the start, because unhandled signals end a process.
  process.on("SIGHUP", () => workers.tell("reload"));
  const first = await workers.startFirst();
  if (first !== undefined) {
    await shared.drain();
    return first.exitCode ?? exitCode.failure;
  }
  for (let place = 2; place <= count; place++) workers.start(place);
  await stopped;
  await Promise.all([workers.drain(), shared.drain()]);
  return exitCode.ok;
}

class Workers {
  /** By place: one that replaces another takes its place, and continues its metrics. */
  readonly #current: Map<number, ChildProcess>;
  readonly #shared: SharedPort;
  readonly #log: WorkersLog;
  #areReplaced = false;

  constructor(current: Map<number, ChildProcess>, shared: SharedPort, log: WorkersLog) {
    this.#current = current;
    this.#shared = shared;
    this.#log = log;
  }

  /** Resolves once the first worker serves, or to that worker if it has ended before. */
  async startFirst(): Promise<ChildProcess | undefined> {
    const first = this.start(1);
    this.#areReplaced = await listens(first);
    return this.#areReplaced ? undefined : first;
  }

  start(place: number): ChildProcess {
    const worker = fork(process.argv[1] ?? "", process.argv.slice(2), {
      env: { ...process.env, [workerVariable]: "on" },
    });
    this.#current.set(place, worker);
    this.#shared.handTo(worker);
    worker.once("exit", (code, signal) => this.#startAgain(place, worker, code ?? signal));
    return worker;
  }

  tell(order: WorkerOrder | "kill"): void {
    for (const worker of this.#current.values()) {
      if (order === "kill") worker.kill("SIGKILL");
      else tell(worker, order);
    }
  }

  /** Resolves when all have drained and ended. */
  async drain(): Promise<void> {
    this.#areReplaced = false;
    const ended = [...this.#current.values()].map((worker) => once(worker, "exit"));
    this.tell("drain");
    await Promise.all(ended);
  }

  #startAgain(place: number, { pid }: ChildProcess, cause: number | string | null): void {
    this.#current.delete(place);
    if (!this.#areReplaced) return;
    this.#log.warn({ errorCode: workerEnded, pid, cause }, "a worker exited and is being replaced");
    setTimeout(() => {
      if (this.#areReplaced) this.start(place);
    }, replaceAfterMs);
  }
}

const workerEnded: PlantErrorCode = "ERR_WORKER_ENDED";

/** Resolves to whether a worker came to listen; `false` if it ended first. */
function listens(worker: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    worker.on("message", ({ port }: WorkerReport) => {
      if (port !== undefined) resolve(true);
    });
    worker.once("exit", () => resolve(false));
  });
}

function tell(worker: ChildProcess, order: WorkerOrder): void {
  // An error is ignored: a worker that is about to end need not be told.
  if (worker.connected) worker.send(order, () => undefined);
}
