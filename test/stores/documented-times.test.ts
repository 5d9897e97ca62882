import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { maxLockedMs } from "../../src/stores/queue/delete-queue.ts";
import { batchTimeoutMs } from "../../src/stores/contract/backend.ts";
import { deleteTimeouts } from "../../src/stores/postgres/delete/store-tables.ts";
import { watchIntervalMs } from "../../src/stores/postgres/postgres-store.ts";
import { fileCheckIntervalMs as fileWatchIntervalMs } from "../../src/stores/sqlite/sqlite-store.ts";
import { replyTimeoutMs } from "../../src/stores/sqlite/storage-thread.ts";
import { lockTimeoutMsDefault } from "../../src/stores/sqlite/transaction.ts";
import { retryIntervalMs } from "../../src/stores/contract/store-health.ts";

const pages = ["explanation/storage.md", "reference/postgresql.md"]
  .map((page) => readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8"))
  .join("\n")
  .replaceAll(/\s+/g, " ");

test.each([
  ["another process holds the lock for 5 s", 5_000, lockTimeoutMsDefault],
  ["until a write succeeds, tried every 1 s", 1_000, retryIntervalMs],
  ["A statement waits at most 0.1 s for a lock", 100, deleteTimeouts.lockTimeoutMs],
  ["and runs at most 5 s", 5_000, deleteTimeouts.statementTimeoutMs],
  ["for two seconds, then unavailable", 2_000, maxLockedMs],
  ["for ten seconds after it is first sent", 10_000, batchTimeoutMs],
  ["its callers get `Unavailable`", 10_000, batchTimeoutMs],
  ["every 5 s, by a write that is rolled back", 5_000, watchIntervalMs],
  ["no batch succeeds for 10 s", 10_000, batchTimeoutMs],
  ["the disk hangs for 20 s", 20_000, replyTimeoutMs],
  ["at the start and every 10 s, by a write past the end", 10_000, fileWatchIntervalMs],
])('the time in "%s" in the pages about storage matches the source', (sentence, documentedMs, actualMs) => {
  expect(pages).toContain(sentence);
  expect(actualMs).toBe(documentedMs);
});
