import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { lockedForMsMax } from "../../src/stores/postgres/delete/locked-deletes.ts";
import { batchTimeoutMs } from "../../src/stores/postgres/delete/run-batch.ts";
import { deleteTimeouts, watchIntervalMs } from "../../src/stores/postgres/store.ts";
import { watchIntervalMs as fileWatchIntervalMs } from "../../src/stores/sqlite/store.ts";
import { lockTimeoutMsDefault } from "../../src/stores/sqlite/transaction.ts";
import { retryIntervalMs } from "../../src/stores/store-health.ts";

const page = readFileSync(new URL("../../docs/explanation/storage.md", import.meta.url), "utf8").replaceAll(
  /\s+/g,
  " ",
);

test.each([
  { sentence: "another process holds the lock for 5 s", saidMs: 5_000, isMs: lockTimeoutMsDefault },
  { sentence: "a write is tried every second", saidMs: 1_000, isMs: retryIntervalMs },
  { sentence: "A statement waits at most 0.1 s for a lock", saidMs: 100, isMs: deleteTimeouts.lockTimeoutMs },
  { sentence: "lock and runs at most 5 s", saidMs: 5_000, isMs: deleteTimeouts.statementTimeoutMs },
  { sentence: "its caller gets `Unavailable` after two seconds", saidMs: 2_000, isMs: lockedForMsMax },
  { sentence: "For up to ten seconds from when it is first sent", saidMs: 10_000, isMs: batchTimeoutMs },
  { sentence: "its callers then get `Unavailable`", saidMs: 10_000, isMs: batchTimeoutMs },
  { sentence: "is not ready and retries every second", saidMs: 1_000, isMs: retryIntervalMs },
  { sentence: "checked every five seconds during normal operation", saidMs: 5_000, isMs: watchIntervalMs },
  { sentence: "turns readiness off within ten seconds", saidMs: 10_000, isMs: batchTimeoutMs },
  {
    sentence: "Every ten seconds, the server makes a write that changes nothing",
    saidMs: 10_000,
    isMs: fileWatchIntervalMs,
  },
])("docs/explanation/storage.md says what holds: $sentence", ({ sentence, saidMs, isMs }) => {
  expect(page).toContain(sentence);
  expect(isMs).toBe(saidMs);
});
