import { Worker } from "node:worker_threads";

/** Maximum number of bytes in the reported task. */
const maxTaskBytes = 500;

// The process is blocked, so the thread reports and kills the process.
const watch = `
const { workerData: { beats, doing, limitMs } } = require("node:worker_threads");
for (;;) {
  const count = Atomics.load(beats, 0);
  if (Atomics.wait(beats, 0, count, limitMs) !== "timed-out") continue;
  const text = Buffer.from(doing).toString("utf8").replace(/\\0.*/s, "");
  require("node:fs").writeSync(2, "blocked for " + limitMs + " ms: " + text + "\\n");
  process.kill(process.pid, "SIGKILL");
}`;

/**
 * Starts a thread that kills this process if it is blocked for `limitMs`, such as by an endless loop. Before, the
 * thread writes the current task to standard error. Returns the function that sets the current task.
 */
export function startWatchdog(limitMs: number): (task: string) => void {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const doing = Buffer.from(new SharedArrayBuffer(maxTaskBytes));
  new Worker(watch, { eval: true, workerData: { beats, doing, limitMs } }).unref();
  const beat = (): void => {
    Atomics.add(beats, 0, 1);
    Atomics.notify(beats, 0);
  };
  setInterval(beat, limitMs / 10).unref();
  return (task) => void doing.fill(0).write(task);
}
