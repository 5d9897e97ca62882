import { expect, test, vi } from "vitest";
import { runInTurns, runSteps } from "../../../src/http/exchange/index.ts";

/** Counts event loop turns until it is stopped. */
function countTurns(): () => number {
  let turns = 0;
  let timer = setImmediate(function count() {
    turns += 1;
    timer = setImmediate(count);
  });
  return () => (clearImmediate(timer), turns);
}

/** Keeps the processor busy for 5 ms in each of `times` steps. */
function* spin(times: number): Generator<void, number> {
  for (let time = 0; time < times; time += 1) {
    const end = performance.now() + 5;
    while (performance.now() < end);
    yield;
  }
  return times;
}

test("runInTurns() yields to the event loop every few milliseconds", async () => {
  const stop = countTurns();
  expect(await runInTurns(spin(40))).toBe(40);
  // 200 ms of work, in turns that take 15 ms at most.
  expect(stop()).toBeGreaterThan(10);
});

test("runInTurns() completes a short task in one turn", async () => {
  using clock = vi.spyOn(performance, "now");
  // All steps take no time.
  clock.mockReturnValue(0);
  const stop = countTurns();
  expect([await runInTurns([1, 2, 3].values()), stop()]).toEqual([undefined, 0]);
});

function* failing(): Generator<void> {
  yield;
  throw new Error("it fails");
}

test("runInTurns() rejects with the error that a step throws", async () => {
  await expect(runInTurns(failing())).rejects.toThrow("it fails");
  expect(() => runSteps(failing())).toThrow("it fails");
});
