import { expect, test } from "vitest";
import { silentLog } from "@protoport/telemetry/logs";
import { watchStoreFailure } from "../../src/server/start-server.ts";
import { openLogLines } from "@protoport/testing/process";
import { fakeStore } from "../support/plants/fake-store.ts";

test("watchStoreFailure logs a failure once", async () => {
  const { log, lines } = openLogLines("fatal");
  const broken = fakeStore({ needsRestart: true });
  const watch = watchStoreFailure(broken, log);
  await watch.storeFailed;
  // Once a second watch has reported the failure, there was enough time for another line of the first.
  const later = watchStoreFailure(broken, silentLog);
  await later.storeFailed;
  expect(lines()).toHaveLength(1);
  watch.stop();
  later.stop();
});
