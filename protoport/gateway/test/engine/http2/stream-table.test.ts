import { expect, test } from "vitest";
import type { IdentifiedStream } from "../../../src/engine/http2/open-streams.ts";
import { StreamTable } from "../../../src/engine/http2/stream-table.ts";

test("absenceOf remembers the last 1,024 streams that the server has reset", () => {
  const table = new StreamTable<IdentifiedStream>();
  for (let streamId = 1; streamId <= 2 * 1025; streamId += 2) {
    table.lastStreamId = streamId;
    table.rememberReset(streamId);
  }
  expect([1, 3, 2049].map((streamId) => table.absenceOf(streamId))).toStrictEqual([
    "closed",
    "reset-by-us",
    "reset-by-us",
  ]);
});
