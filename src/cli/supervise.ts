import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { firstStopSignal } from "./stop-signals.ts";
import { type WorkerOrder, workerPortVariable, type WorkerReport } from "./worker.ts";
import { exitCode } from "./command.ts";

/** Options of {@link superviseWorkers}. */
export interface WorkersOptions {
  readonly count: number;
  /** The port that the workers share; 0 for a free one. */
  readonly port: number;
  /** The log of replaced workers. */
  readonly log: { warn(fields: object, message: string): void };
}

/** Milliseconds before a worker is replaced: soon enough after a crash, slow enough when workers cannot start. */
const replaceAfterMs = 500;

/**
 * Serves with several processes that share a port (SO_REUSEPORT: the kernel distributes connections).
 *
 * A worker that ends is replaced. If the first one cannot start, neither can the others, and its exit code is returned.
 * A stop signal drains all workers, after which this resolves to 0; a second one ends all of them at once.
 */
export async function superviseWorkers({ count, port, log }: WorkersOptions): Promise<number> {
  const workers = new Set<ChildProcess>();
  const stopped = firstStopSignal(() => workers.forEach((worker) => worker.kill("SIGKILL")));
  let stopping = false;

  function start(sharedPort: number): ChildProcess {
    const env = { ...process.env, [workerPortVariable]: String(sharedPort) };
    const worker = fork(process.argv[1] ?? "", process.argv.slice(2), { env });
    workers.add(worker);
    worker.once("exit", () => workers.delete(worker));
    return worker;
  }

  function startAndReplace(sharedPort: number): void {
    const worker = start(sharedPort);
    worker.once("exit", (code, signal) => replace(sharedPort, worker, code ?? signal));
  }

  function replace(sharedPort: number, worker: ChildProcess, cause: number | string | null): void {
    if (stopping) return;
    log.warn({ pid: worker.pid, cause }, "a worker ended and is replaced");
    setTimeout(() => {
      if (!stopping) startAndReplace(sharedPort);
    }, replaceAfterMs);
  }

  const first = start(port);
  const sharedPort = await listeningPort(first);
  if (sharedPort === undefined) return first.exitCode ?? exitCode.failure;
  first.once("exit", (code, signal) => replace(sharedPort, first, code ?? signal));
  for (let number = 1; number < count; number++) startAndReplace(sharedPort);
  process.on("SIGHUP", () => tell(workers, "reload"));
  await stopped;
  stopping = true;
  const ended = [...workers].map((worker) => once(worker, "exit"));
  tell(workers, "drain");
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

function tell(workers: ReadonlySet<ChildProcess>, order: WorkerOrder): void {
  for (const worker of workers) {
    // A worker that is about to end need not be told.
    if (worker.connected) worker.send(order, () => undefined);
  }
}
