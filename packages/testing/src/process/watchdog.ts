import { Worker } from "node:worker_threads";

/** Bytes of what a process is doing, as far as they are shown. */
const doingBytesMax = 500;

// The process itself is blocked, so the thread writes and ends it by itself.
const watch = `
const { workerData: { beats, doing, limitMs } } = require("node:worker_threads");
for (;;) {
  const seen = Atomics.load(beats, 0);
  if (Atomics.wait(beats, 0, seen, limitMs) !== "timed-out") continue;
  const text = Buffer.from(doing).toString("utf8").replace(/\\0.*/s, "");
  require("node:fs").writeSync(2, "blocked for " + limitMs + " ms: " + text + "\\n");
  process.kill(process.pid, "SIGKILL");
}`;

/**
 * Starts a thread that ends this process once it has done nothing but one thing for `limitMs`, such as an endless loop,
 * and writes to standard error what that is. Returns the function that tells the thread what the process is doing.
 */
export function startWatchdog(limitMs: number): (what: string) => void {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const doing = Buffer.from(new SharedArrayBuffer(doingBytesMax));
  new Worker(watch, { eval: true, workerData: { beats, doing, limitMs } }).unref();
  const beat = (): void => {
    Atomics.add(beats, 0, 1);
    Atomics.notify(beats, 0);
  };
  setInterval(beat, limitMs / 10).unref();
  return (what) => void doing.fill(0).write(what);
}
