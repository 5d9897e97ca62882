import { expect, test } from "vitest";
import type { OnUpkeep } from "../../src/stores/index.ts";
import { logUpkeep } from "../../src/server/log-upkeep.ts";

test.each<{ given: Parameters<OnUpkeep>[0]; level: "info" | "warn"; msg: string; errorCode?: string }>([
  { given: { kind: "migrated", from: 1, to: 2, lastedMs: 3 }, level: "info", msg: "schema migrated" },
  { given: { kind: "records-dropped", count: 4, lastedMs: 5 }, level: "info", msg: "deletion records dropped" },
  {
    given: { kind: "retention-failed", problem: "full", lastedMs: 6 },
    level: "warn",
    msg: "deletion records not dropped",
    errorCode: "ERR_RECORDS_NOT_DROPPED",
  },
  {
    given: { kind: "worker-away", problem: "db2", lastedMs: 7 },
    level: "warn",
    msg: "worker away",
    errorCode: "ERR_SERVER_AWAY",
  },
  { given: { kind: "worker-back", lastedMs: 8 }, level: "warn", msg: "worker back" },
  { given: { kind: "names-refused", problem: "x", lastedMs: 9 }, level: "warn", msg: "statements not prepared" },
])("the upkeep $given.kind is one line with all that is known of it", ({ given, level, msg, errorCode }) => {
  const lines: unknown[] = [];
  const write =
    (at: string) =>
    (fields: object, text?: string): void =>
      void lines.push([at, fields, text]);
  logUpkeep({ info: write("info"), warn: write("warn") })(given);
  const { kind: _, ...fields } = given;
  expect(lines).toEqual([[level, { ...fields, ...(errorCode && { errorCode }) }, msg]]);
});
