import { expect, test } from "vitest";
import type { OnUpkeep } from "../../src/stores/index.ts";
import { logUpkeep } from "../../src/server/start-server.ts";

test.each<{ event: Parameters<OnUpkeep>[0]; level: "info" | "warn"; msg: string; errorCode?: string }>(
  // oxfmt-ignore
  [
    { event: { kind: "migrated", from: 1, to: 2, lastedMs: 3 }, level: "info", msg: "schema migrated" },
    { event: { kind: "records-dropped", count: 4, lastedMs: 5 }, level: "info", msg: "old deletion records dropped" },
    { event: { kind: "retention-failed", problem: "full", lastedMs: 6 }, level: "warn",
      msg: "cannot drop old deletion records", errorCode: "ERR_RETENTION_FAILED" },
    { event: { kind: "second-name-found", problem: "the file has 2 names" }, level: "warn",
      msg: "the file of the store has a second name", errorCode: "ERR_STORE_SECOND_NAME" },
    { event: { kind: "second-name-gone", lastedMs: 10 }, level: "warn",
      msg: "the file of the store has a single name again" },
    { event: { kind: "checkpoints-stalled", problem: "the disk failed" }, level: "warn",
      msg: "the write-ahead log is not copied into the file", errorCode: "ERR_CHECKPOINTS_STALLED" },
    { event: { kind: "checkpoints-resumed", lastedMs: 11 }, level: "warn",
      msg: "the write-ahead log is copied into the file again" },
    { event: { kind: "connections-refused", problem: "x", lastedMs: 9 }, level: "warn",
      msg: "too few database connections; allow five per process" },
  ],
)("logUpkeep logs the event $event.kind in one line with all its fields", ({ event, level, msg, errorCode }) => {
  const lines: unknown[] = [];
  const write =
    (at: string) =>
    (fields: object, text?: string): void =>
      void lines.push([at, fields, text]);
  logUpkeep({ info: write("info"), warn: write("warn") })(event);
  const { kind: _, ...fields } = event;
  expect(lines).toEqual([[level, { ...fields, ...(errorCode && { errorCode }) }, msg]]);
});
