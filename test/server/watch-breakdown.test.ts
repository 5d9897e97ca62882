import { expect, test } from "vitest";
import { silentLog } from "../../packages/telemetry/src/logs/index.ts";
import { watchBreakdown } from "../../src/server/watch-breakdown.ts";
import { openLogLines } from "../../packages/testing/src/operations/log-lines.ts";
import { fakeStore } from "../support/plants/fake-store.ts";

test("a breakdown is told of once", async () => {
  const { log, lines } = openLogLines("fatal");
  const broken = fakeStore({ needsRestart: true });
  const watch = watchBreakdown(broken, log);
  await watch.breakdown;
  // Another one shows that there was time for more.
  const later = watchBreakdown(broken, silentLog);
  await later.breakdown;
  expect(lines()).toHaveLength(1);
  watch.stop();
  later.stop();
});
