import { once } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { describe, expect, test, vi } from "vitest";
import { spinMsAfter, spinMsMax, ThreadWakeUp } from "../../../../../src/stores/sqlite/thread-wake-up.ts";

// Enough to show an error that occurs once in a thousand rounds.
const rounds = 2_000;

// Without a timeout, a missed wake-up makes the thread sleep forever, and the test fail.
const forEver = Number.POSITIVE_INFINITY;

describe("ThreadWakeUp", () => {
  test("returns the requests in order, and undefined after the last one", () => {
    const { port1: near, port2: far } = new MessageChannel();
    const wakeUp = new ThreadWakeUp();
    const farWakeUp = new ThreadWakeUp(wakeUp.memory);
    for (const kind of ["checkWrite", "close"]) {
      near.postMessage({ kind });
      wakeUp.announce();
    }
    expect(farWakeUp.nextRequest(far, forEver)?.message).toEqual({ kind: "checkWrite" });
    expect(farWakeUp.nextRequest(far, forEver)?.message).toEqual({ kind: "close" });
    expect(farWakeUp.nextRequest(far, 0)).toBeUndefined();
    expect(farWakeUp.nextRequest(far, 0, 1)).toBeUndefined();
    near.close();
  });

  test("checks once with a negative timeout, without spinning", () => {
    const { port1: near, port2: far } = new MessageChannel();
    const load = vi.spyOn(Atomics, "load");
    expect(new ThreadWakeUp().nextRequest(far, -1, 1)).toBeUndefined();
    expect(load).toHaveBeenCalledTimes(1);
    load.mockRestore();
    near.close();
  });

  test("returns a request that arrives during its check", () => {
    const { port1: near, port2: far } = new MessageChannel();
    const wakeUp = new ThreadWakeUp();
    // By chance, threads run in this order once in a hundred thousand times. Here the request always arrives when the
    // number of announced requests is read, before or after the port is checked.
    const { load } = Atomics;
    const loadOnce = (counts: Int32Array, index: number): number => {
      Object.assign(Atomics, { load });
      near.postMessage({ kind: "close" });
      wakeUp.announce();
      return load(counts, index);
    };
    Object.assign(Atomics, { load: loadOnce });
    const wait = vi.spyOn(Atomics, "wait");
    expect(wakeUp.nextRequest(far, 1_000)?.message).toEqual({ kind: "close" });
    expect(wait).not.toHaveBeenCalled();
    wait.mockRestore();
    near.close();
  });

  test.each([
    { name: "a sleeping thread", arguments: "Infinity" },
    { name: "a spinning thread", arguments: "Infinity, 0.05" },
    { name: "a busy-waiting thread", arguments: "0, 60_000" },
  ])("wakes $name repeatedly", async ({ arguments: patience }) => {
    const program = `
      import { parentPort, workerData } from "node:worker_threads";
      import { spinMsAfter, spinMsMax, ThreadWakeUp } from ${JSON.stringify(new URL("../../../../../src/stores/sqlite/thread-wake-up.ts", import.meta.url).href)};
      const wakeUp = new ThreadWakeUp(workerData);
      let spurious = 0;
      for (let sent = 0; sent < ${rounds}; ) {
        const request = wakeUp.nextRequest(parentPort, ${patience});
        if (request === undefined) {
          // A wake-up may be for a request that was already received. If there are more wake-ups than requests, the
          // thread did not wait.
          if (++spurious > ${rounds}) throw new Error("it did not wait");
          continue;
        }
        parentPort.postMessage(request.message);
        sent++;
      }`;
    const wakeUp = new ThreadWakeUp();
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), {
      workerData: wakeUp.memory,
    });
    // A thread's last messages and its exit arrive at the same time.
    const ended = once(worker, "exit");
    for (let sent = 0; sent < rounds; sent++) {
      const reply = once(worker, "message");
      worker.postMessage(sent);
      wakeUp.announce();
      expect(await reply).toEqual([sent]);
    }
    expect(await ended).toEqual([0]);
  });
});

test.each([
  {
    name: "a fast caller's deletion",
    isSingle: true,
    afterMs: 0.18,
    verb: "spins",
  },
  { name: "a slow caller's deletion", isSingle: true, afterMs: 0.3, verb: "does not spin" },
  { name: "its first request", isSingle: true, afterMs: Infinity, verb: "does not spin" },
  { name: "a batch with several deletions", isSingle: false, afterMs: 0.1, verb: "does not spin" },
])("after $name, the storage thread $verb for the next request", ({ isSingle, afterMs, verb }) => {
  expect(spinMsAfter(isSingle, afterMs)).toBe(verb === "spins" ? spinMsMax : 0);
});
