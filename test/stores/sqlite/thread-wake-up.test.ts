import { once } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { describe, expect, test, vi } from "vitest";
import { ThreadWakeUp } from "../../../src/stores/sqlite/thread-wake-up.ts";

// So many that what goes wrong once in a thousand rounds is seen.
const rounds = 2_000;

// Sleeping for ever would show a ring that is missed.
const forEver = Number.POSITIVE_INFINITY;

describe("ThreadWakeUp", () => {
  test("returns the requests in order, and undefined after the last", () => {
    const { port1: near, port2: far } = new MessageChannel();
    const bell = new ThreadWakeUp();
    const farBell = new ThreadWakeUp(bell.memory);
    for (const kind of ["checkWrite", "close"]) {
      near.postMessage({ kind });
      bell.announce();
    }
    expect(farBell.nextRequest(far, forEver)?.message).toEqual({ kind: "checkWrite" });
    expect(farBell.nextRequest(far, forEver)?.message).toEqual({ kind: "close" });
    expect(farBell.nextRequest(far, 0)).toBeUndefined();
    expect(farBell.nextRequest(far, 0, 1)).toBeUndefined();
    near.close();
  });

  test("does not spin with a negative timeout", () => {
    const { port1: near, port2: far } = new MessageChannel();
    const load = vi.spyOn(Atomics, "load");
    expect(new ThreadWakeUp().nextRequest(far, -1, 1)).toBeUndefined();
    expect(load).toHaveBeenCalledTimes(1);
    load.mockRestore();
    near.close();
  });

  test("wakes up for a request that arrives right after the port was checked", () => {
    const { port1: near, port2: far } = new MessageChannel();
    const bell = new ThreadWakeUp();
    // Threads come to this order once in a hundred thousand times. Here the request comes at the moment at which it
    // is read how many were announced: before the look or after it.
    const { load } = Atomics;
    const loadOnce = (counts: Int32Array, index: number): number => {
      Object.assign(Atomics, { load });
      near.postMessage({ kind: "close" });
      bell.announce();
      return load(counts, index);
    };
    Object.assign(Atomics, { load: loadOnce });
    const wait = vi.spyOn(Atomics, "wait");
    expect(bell.nextRequest(far, 1_000)?.message).toEqual({ kind: "close" });
    expect(wait).not.toHaveBeenCalled();
    wait.mockRestore();
    near.close();
  });

  test.each([
    { name: "a sleeping thread", arguments: "Infinity" },
    { name: "a thread that spins for a while", arguments: "Infinity, 0.05" },
    { name: "a spinning thread that would not sleep", arguments: "0, 60_000" },
  ])("wakes $name repeatedly", async ({ arguments: patience }) => {
    const program = `
      import { parentPort, workerData } from "node:worker_threads";
      import { ThreadWakeUp } from ${JSON.stringify(new URL("../../../src/stores/sqlite/thread-wake-up.ts", import.meta.url).href)};
      const bell = new ThreadWakeUp(workerData);
      let inVain = 0;
      for (let sent = 0; sent < ${rounds}; ) {
        const request = bell.nextRequest(parentPort, ${patience});
        if (request === undefined) {
          // A ring that came after its request had been found; any other would be one that was not waited for.
          if (++inVain > ${rounds}) throw new Error("it did not wait");
          continue;
        }
        parentPort.postMessage(request.message);
        sent++;
      }`;
    const bell = new ThreadWakeUp();
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), {
      workerData: bell.memory,
    });
    // A thread that ends hands over its last messages and its end at once.
    const ended = once(worker, "exit");
    for (let sent = 0; sent < rounds; sent++) {
      const reply = once(worker, "message");
      worker.postMessage(sent);
      bell.announce();
      expect(await reply).toEqual([sent]);
    }
    expect(await ended).toEqual([0]);
  });
});
