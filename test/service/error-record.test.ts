import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorRecord } from "../../src/service/error-record.ts";

test("an error without a message has an empty message in its record", () => {
  const record = errorRecord(new ConnectError("", Code.Internal), { httpStatus: 500, procedure: undefined });
  expect(JSON.stringify(record.body)).toBe('{"error":13,"message":""}');
});
