import { once } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { describe, expect, test, vi } from "vitest";
import { ThreadWakeUp } from "../../../src/stores/sqlite/thread-wake-up.ts";

// So many that what goes wrong once in a thousand rounds is seen.
const rounds = 2_000;

// Sleeping for ever would show a ring that is missed.
const forEver = Number.POSITIVE_INFINITY;

describe("ThreadWakeUp", () => {
  test("gives the questions in their order, and nothing once they are all given", () => {
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

  test("does not stay awake for a question when there is no time to wait for one", () => {
    const { port1: near, port2: far } = new MessageChannel();
    const load = vi.spyOn(Atomics, "load");
    expect(new ThreadWakeUp().nextRequest(far, -1, 1)).toBeUndefined();
    expect(load).toHaveBeenCalledTimes(1);
    load.mockRestore();
    near.close();
  });

  test("does not sleep through a question that comes when it has just looked for one", () => {
    const { port1: near, port2: far } = new MessageChannel();
    const bell = new ThreadWakeUp();
    // Threads come to this order once in a hundred thousand times. Here the question comes at the moment at which it
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
    { name: "a thread that sleeps", arguments: "Infinity" },
    { name: "a thread that stays awake for a while", arguments: "Infinity, 0.05" },
    { name: "a thread that stays awake and would not sleep", arguments: "0, 60_000" },
  ])("wakes $name, time after time", async ({ arguments: patience }) => {
    const program = `
      import { parentPort, workerData } from "node:worker_threads";
      import { ThreadWakeUp } from ${JSON.stringify(new URL("../../../src/stores/sqlite/thread-wake-up.ts", import.meta.url).href)};
      const bell = new ThreadWakeUp(workerData);
      let inVain = 0;
      for (let asked = 0; asked < ${rounds}; ) {
        const question = bell.nextRequest(parentPort, ${patience});
        if (question === undefined) {
          // A ring that came after its question had been found; any other would be one that was not waited for.
          if (++inVain > ${rounds}) throw new Error("it did not wait");
          continue;
        }
        parentPort.postMessage(question.message);
        asked++;
      }`;
    const bell = new ThreadWakeUp();
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), {
      workerData: bell.memory,
    });
    // A thread that ends hands over its last messages and its end at once.
    const ended = once(worker, "exit");
    for (let asked = 0; asked < rounds; asked++) {
      const answered = once(worker, "message");
      worker.postMessage(asked);
      bell.announce();
      expect(await answered).toEqual([asked]);
    }
    expect(await ended).toEqual([0]);
  });
});
