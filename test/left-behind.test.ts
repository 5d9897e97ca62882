import { connect } from "node:net";
import { expect, test } from "vitest";
import { silentLog } from "../packages/telemetry/src/logs/index.ts";
import { startGreenhouse } from "../packages/testing/src/gateway/greenhouse.ts";
import { watchStoreFailure } from "../src/server/watch-store-failure.ts";
import { openMemoryStore } from "../src/index.ts";

// With a folder of sources that has moved, the watch would find nothing left behind, whatever was.

function filesThatBegan(): string[] {
  return [...(globalThis.begun ?? [])].map(({ callers: [nearest = ""] }) => nearest);
}

test("the watch for what test files leave behind sees what the packages have begun", async () => {
  await using greenhouse = await startGreenhouse({});
  const socket = connect(greenhouse.address);
  await expect.poll(filesThatBegan).toContainEqual(expect.stringContaining("/packages/gateway/src/"));
  socket.destroy();
});

test("the watch for what test files leave behind sees what the plant store has begun", () => {
  const watch = watchStoreFailure(openMemoryStore(), silentLog);
  expect(filesThatBegan()).toContainEqual(expect.stringContaining("/src/server/watch-store-failure.ts"));
  watch.stop();
});
