import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { maxLockedMs } from "../../src/stores/queue/delete-queue.ts";
import { batchTimeoutMs } from "../../src/stores/contract/backend.ts";
import { deleteTimeouts } from "../../src/stores/postgres/delete/single-server.ts";
import { watchIntervalMs } from "../../src/stores/postgres/postgres-store.ts";
import { fileCheckIntervalMs as fileWatchIntervalMs } from "../../src/stores/sqlite/sqlite-store.ts";
import { lockTimeoutMsDefault } from "../../src/stores/sqlite/transaction.ts";
import { retryIntervalMs } from "../../src/stores/contract/store-health.ts";

const pages = ["explanation/storage.md", "reference/postgresql.md"]
  .map((page) => readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8"))
  .join("\n")
  .replaceAll(/\s+/g, " ");

test.each([
  { sentence: "another process holds the lock for 5 s", documentedMs: 5_000, actualMs: lockTimeoutMsDefault },
  { sentence: "until a write succeeds, tried every 1 s", documentedMs: 1_000, actualMs: retryIntervalMs },
  { sentence: "A statement waits at most 0.1 s for a lock", documentedMs: 100, actualMs: deleteTimeouts.lockTimeoutMs },
  { sentence: "lock and runs at most 5 s", documentedMs: 5_000, actualMs: deleteTimeouts.statementTimeoutMs },
  { sentence: "its caller gets `Unavailable` after two seconds", documentedMs: 2_000, actualMs: maxLockedMs },
  { sentence: "for up to ten seconds from when it is first sent", documentedMs: 10_000, actualMs: batchTimeoutMs },
  { sentence: "its callers get `Unavailable`", documentedMs: 10_000, actualMs: batchTimeoutMs },
  { sentence: "is not ready and retries every second", documentedMs: 1_000, actualMs: retryIntervalMs },
  { sentence: "checked every five seconds during normal operation", documentedMs: 5_000, actualMs: watchIntervalMs },
  { sentence: "turns readiness off within ten seconds", documentedMs: 10_000, actualMs: batchTimeoutMs },
  {
    sentence: "at the start and every 10 s, by a write past the end",
    documentedMs: 10_000,
    actualMs: fileWatchIntervalMs,
  },
])('the time in "$sentence" in the pages about storage matches the source', ({ sentence, documentedMs, actualMs }) => {
  expect(pages).toContain(sentence);
  expect(actualMs).toBe(documentedMs);
});
