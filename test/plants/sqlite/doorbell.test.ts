import { once } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { Doorbell } from "../../../src/plants/sqlite/doorbell.ts";

// Sleeping for ever would show a ring that is missed.
const forEver = Number.POSITIVE_INFINITY;

describe("a doorbell", () => {
  test("gives the questions in their order, and nothing once they are all given", () => {
    const { port1: near, port2: far } = new MessageChannel();
    const bell = new Doorbell();
    const farBell = new Doorbell(bell.memory);
    for (const kind of ["try-to-write", "close"]) {
      near.postMessage({ kind });
      bell.ring();
    }
    expect(farBell.nextQuestion(far, forEver)).toEqual({ kind: "try-to-write" });
    expect(farBell.nextQuestion(far, forEver)).toEqual({ kind: "close" });
    expect(farBell.nextQuestion(far, 0)).toBeUndefined();
    near.close();
  });

  test.each([
    { name: "a thread that sleeps", arguments: "Infinity" },
    { name: "a thread that stays awake for a while", arguments: "Infinity, 0.05" },
    { name: "a thread that stays awake and would not sleep", arguments: "0, 60_000" },
  ])("wakes $name, time after time", async ({ arguments: patience }) => {
    const program = `
      import { parentPort, workerData } from "node:worker_threads";
      import { Doorbell } from ${JSON.stringify(new URL("../../../src/plants/sqlite/doorbell.ts", import.meta.url).href)};
      const bell = new Doorbell(workerData);
      let inVain = 0;
      for (let asked = 0; asked < 2_000; ) {
        const question = bell.nextQuestion(parentPort, ${patience});
        if (question === undefined) {
          // A ring that came after its question had been found; any other would be one that was not waited for.
          if (++inVain > 2_000) throw new Error("it did not wait");
          continue;
        }
        parentPort.postMessage(question);
        asked++;
      }`;
    const bell = new Doorbell();
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), {
      workerData: bell.memory,
    });
    // A thread that ends hands over its last messages and its end at once.
    const ended = once(worker, "exit");
    for (let asked = 0; asked < 2_000; asked++) {
      const answered = once(worker, "message");
      worker.postMessage(asked);
      bell.ring();
      expect(await answered).toEqual([asked]);
    }
    expect(await ended).toEqual([0]);
  });
});
