import { expect, test } from "vitest";
import { silentLog } from "../../../src/operators/operations/index.ts";
import { watchBreakdown } from "../../../src/plantstore/server/watch-breakdown.ts";
import { fakeStore } from "../../support/plants/fake-store.ts";

test("a watch for a breakdown does not keep the process alive", () => {
  const before = timers();
  const watch = watchBreakdown(fakeStore({}), silentLog);
  expect(timers()).toBe(before);
  watch.stop();
});

function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
}
