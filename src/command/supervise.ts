import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { firstStopSignal } from "@plantstore/command-line";
import {
  type BindOptions,
  type Configuration,
  type openLog,
  type PlantErrorCode,
  serveAdmin,
  shareConnections,
  type SharedPort,
} from "../server/index.ts";
import { exitCode, type Terminal } from "./command.ts";
import { type WorkerOrder, type WorkerReport, workerVariable } from "./worker.ts";
import { collectFromWorkers, findProblemsOfWorkers } from "./worker-metrics.ts";

/** Options for {@link superviseWorkers}. */
export interface WorkersOptions {
  readonly count: number;
  /** Where to listen. */
  readonly bindOptions: BindOptions;
  /** The address on which all workers' metrics are served. */
  readonly adminAddress: Configuration["adminAddress"];
  /** The HTTP implementation that serves the metrics. Workers read the setting themselves. */
  readonly httpEngine: Configuration["httpEngine"];
  /** Sets what each SIGHUP calls. */
  readonly onHangup: Terminal["onHangup"];
  /** The log for messages about workers that exit and are replaced. */
  readonly log: WorkersLog;
}

type WorkersLog = Pick<ReturnType<typeof openLog>, "info" | "warn">;

/**
 * Milliseconds before an exited worker is replaced: short after a crash, but long enough to avoid a busy loop if
 * workers cannot start.
 */
const replaceAfterMs = 500;

/**
 * Listens, and serves with several worker processes. Connections are distributed evenly among them.
 *
 * A worker that exits is replaced. If the first worker cannot start, the others could not either, so its exit code is
 * returned. A stop signal drains all workers, and the promise then resolves to 0. A second signal kills all workers
 * immediately.
 *
 * Rejects with the system error when the address cannot be listened on.
 */
export async function superviseWorkers(options: WorkersOptions): Promise<number> {
  const { count, bindOptions, adminAddress, httpEngine, onHangup, log } = options;
  // The addresses are opened before workers are started, which would keep running after a failure to listen.
  await using opened = new AsyncDisposableStack();
  const current = new Map<number, ChildProcess>();
  if (adminAddress !== undefined) {
    // Concurrent scrapes share one collection.
    let collecting: ReturnType<typeof collectFromWorkers> | undefined;
    const collect = (): ReturnType<typeof collectFromWorkers> =>
      (collecting ??= collectFromWorkers(current).finally(() => (collecting = undefined)));
    const problems = (): ReturnType<typeof findProblemsOfWorkers> => findProblemsOfWorkers(current);
    opened.use(await serveAdmin(adminAddress, { collect, problems }, log, httpEngine));
  }
  // reusePort, so that a new process can listen before this one stops.
  const sharedPort = await shareConnections({ ...bindOptions, reusePort: true });
  const workers = new Workers(current, sharedPort, log);
  const stopped = firstStopSignal(() => workers.send("kill"));
  const first = await workers.startFirst();
  if (first !== undefined) {
    await sharedPort.drain();
    return first.exitCode ?? exitCode.failure;
  }
  // Workers that are started later read their files afterwards.
  onHangup(() => workers.send("reload"));
  for (let slot = 2; slot <= count; slot++) workers.start(slot);
  await stopped;
  await Promise.all([workers.drain(), sharedPort.drain()]);
  return exitCode.ok;
}

class Workers {
  /**
   * The current workers by slot. A replacement gets the slot of the exited worker, so that the slot's metrics continue.
   */
  readonly #current: Map<number, ChildProcess>;
  readonly #sharedPort: SharedPort;
  readonly #log: WorkersLog;
  #isReplacing = false;

  constructor(current: Map<number, ChildProcess>, shared: SharedPort, log: WorkersLog) {
    this.#current = current;
    this.#sharedPort = shared;
    this.#log = log;
  }

  /** Starts the first worker. Resolves to `undefined` once it listens, or to the worker if it exits first. */
  async startFirst(): Promise<ChildProcess | undefined> {
    const first = this.start(1);
    this.#isReplacing = await startsListening(first);
    return this.#isReplacing ? undefined : first;
  }

  start(slot: number): ChildProcess {
    const worker = fork(process.argv[1] ?? "", process.argv.slice(2), {
      env: { ...process.env, [workerVariable]: "on" },
    });
    this.#current.set(slot, worker);
    this.#sharedPort.handTo(worker);
    worker.once("exit", (code, signal) => this.#replace(slot, worker, code ?? signal));
    return worker;
  }

  send(order: WorkerOrder | "kill"): void {
    for (const worker of this.#current.values()) {
      if (order === "kill") worker.kill("SIGKILL");
      else sendOrder(worker, order);
    }
  }

  /** Resolves when all workers have drained and exited. */
  async drain(): Promise<void> {
    this.#isReplacing = false;
    const exited = [...this.#current.values()].map((worker) => once(worker, "exit"));
    this.send("drain");
    await Promise.all(exited);
  }

  #replace(slot: number, { pid }: ChildProcess, cause: number | string | null): void {
    this.#current.delete(slot);
    if (!this.#isReplacing) return;
    this.#log.warn({ errorCode: workerExited, pid, cause }, "a worker exited and is being replaced");
    setTimeout(() => {
      if (this.#isReplacing) this.start(slot);
    }, replaceAfterMs);
  }
}

const workerExited: PlantErrorCode = "ERR_WORKER_EXITED";

/** Resolves to `true` when a worker listens, or to `false` if it exits first. */
function startsListening(worker: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    worker.on("message", ({ port }: WorkerReport) => {
      if (port !== undefined) resolve(true);
    });
    worker.once("exit", () => resolve(false));
  });
}

function sendOrder(worker: ChildProcess, order: WorkerOrder): void {
  // Errors are ignored, because they occur only if the worker is exiting.
  if (worker.connected) worker.send(order, () => undefined);
}
