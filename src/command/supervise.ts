import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { firstStopSignal } from "@protoport/command-line";
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
  /** The address to listen on. */
  readonly bindOptions: BindOptions;
  /** The address for the metrics of all workers. */
  readonly adminAddress: Configuration["adminAddress"];
  /** The HTTP implementation for the metrics. Workers read the setting themselves. */
  readonly httpEngine: Configuration["httpEngine"];
  /** Sets a function to call on each SIGHUP. */
  readonly onHangup: Terminal["onHangup"];
  /** The log for replaced workers. */
  readonly log: WorkersLog;
}

type WorkersLog = Pick<ReturnType<typeof openLog>, "info" | "warn">;

// Delay before an exited worker is replaced, in milliseconds. Avoids a busy loop if workers cannot start.
const replaceAfterMs = 500;

/**
 * Listens, and serves with several worker processes. Distributes connections evenly among the workers.
 *
 * A worker that exits is replaced. If the first worker cannot start, other workers could not start either, so the
 * promise resolves to the first worker's exit code. A stop signal drains all workers, and the promise then resolves to
 * 0. A second signal kills all workers immediately.
 *
 * Rejects with the system error if listening fails, or if the system cannot start the first worker's process. If the
 * system cannot start another process, for example because there are too many processes, tries again later.
 */
export async function superviseWorkers(options: WorkersOptions): Promise<number> {
  const { count, bindOptions, adminAddress, httpEngine, onHangup, log } = options;
  // Opens the addresses before the workers start. If listening failed later, the workers would keep running.
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
  // With `reusePort`, a new process can listen before this process stops.
  const sharedPort = await shareConnections({ ...bindOptions, reusePort: true });
  const workers = new Workers(current, sharedPort, log);
  const stopped = firstStopSignal(() => workers.send("kill"));
  const first = await workers.startFirst().catch(async (reason: unknown) => {
    await sharedPort.drain();
    throw reason;
  });
  if (first !== undefined) {
    await sharedPort.drain();
    return first.exitCode ?? exitCode.failure;
  }
  // Reloads only current workers, because later workers read the new files when they start.
  onHangup(() => workers.send("reload"));
  for (let slot = 2; slot <= count; slot++) workers.startOrRetry(slot);
  await stopped;
  await Promise.all([workers.drain(), sharedPort.drain()]);
  return exitCode.ok;
}

class Workers {
  /** The current workers, by slot. A replacement gets the same slot, so that the slot's metrics continue. */
  readonly #current: Map<number, ChildProcess>;
  readonly #sharedPort: SharedPort;
  readonly #log: WorkersLog;
  #isReplacing = false;

  constructor(current: Map<number, ChildProcess>, shared: SharedPort, log: WorkersLog) {
    this.#current = current;
    this.#sharedPort = shared;
    this.#log = log;
  }

  /**
   * Starts the first worker. Resolves to `undefined` once the worker listens, or to the worker if it exits first.
   * Rejects with the system error if the system cannot start the process.
   */
  async startFirst(): Promise<ChildProcess | undefined> {
    const first = this.#start(1);
    this.#isReplacing = await startsListening(first);
    return this.#isReplacing ? undefined : first;
  }

  /** Starts a worker. If the system cannot start the process, tries again later. */
  startOrRetry(slot: number): void {
    try {
      this.#start(slot);
    } catch (fault) {
      this.#replace(slot, undefined, String(fault));
    }
  }

  /** @throws some system errors of starting a process. For the others, such as EAGAIN, the process emits "error" */
  #start(slot: number): ChildProcess {
    const worker = fork(process.argv[1] ?? "", process.argv.slice(2), {
      env: { ...process.env, [workerVariable]: "on" },
    });
    this.#current.set(slot, worker);
    this.#sharedPort.handTo(worker);
    worker.once("exit", (code, signal) => this.#replace(slot, worker.pid, code ?? signal));
    // A process that could not be started has no id, and emits "error" instead of "exit".
    worker.on("error", (fault) => {
      if (worker.pid === undefined) this.#replace(slot, undefined, String(fault));
    });
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

  #replace(slot: number, pid: number | undefined, cause: number | string | null): void {
    this.#current.delete(slot);
    if (!this.#isReplacing) return;
    const what =
      pid === undefined ? "a worker could not be started and is tried again" : "a worker exited and is being replaced";
    this.#log.warn({ errorCode: workerExited, pid, cause }, what);
    setTimeout(() => {
      if (this.#isReplacing) this.startOrRetry(slot);
    }, replaceAfterMs);
  }
}

const workerExited: PlantErrorCode = "ERR_WORKER_EXITED";

/** Resolves to `true` when a worker listens, or to `false` if the worker exits first. Rejects if no process starts. */
function startsListening(worker: ChildProcess): Promise<boolean> {
  return new Promise((resolve, reject) => {
    worker.on("message", ({ port }: WorkerReport) => {
      if (port !== undefined) resolve(true);
    });
    worker.once("exit", () => resolve(false));
    worker.once("error", reject);
  });
}

function sendOrder(worker: ChildProcess, order: WorkerOrder): void {
  // Ignores errors, because errors occur only if the worker is exiting.
  if (worker.connected) worker.send(order, () => undefined);
}
