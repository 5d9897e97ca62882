import { connect } from "node:net";
import { expect, test } from "vitest";
import { silentLog } from "@protoport/telemetry/logs";
import { startGreenhouse } from "../../../protoport/testing/src/gateway/greenhouse.ts";
import { watchStoreFailure } from "../../../src/server/start-server.ts";
import { openMemoryStore } from "../../../src/index.ts";

// If the source folder moved, the check for leftovers would find nothing.

function filesWithOpenResources(): string[] {
  return [...(globalThis.openResources ?? [])].map(({ callers: [nearest = ""] }) => nearest);
}

test("the leftover check detects resources from the packages", async () => {
  await using greenhouse = await startGreenhouse({});
  const socket = connect(greenhouse.address);
  await expect.poll(filesWithOpenResources).toContainEqual(expect.stringContaining("/protoport/gateway/src/http/"));
  socket.destroy();
});

test("the leftover check detects resources from the plant store", () => {
  const watch = watchStoreFailure(openMemoryStore(), silentLog);
  expect(filesWithOpenResources()).toContainEqual(expect.stringContaining("/src/server/start-server.ts"));
  watch.stop();
});
