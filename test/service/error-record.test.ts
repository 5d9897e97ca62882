import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorRecord } from "../../src/service/error-record.ts";

test("an error without a message has an empty message in its record", () => {
  const record = errorRecord(new ConnectError("", Code.Internal), { httpStatus: 500, procedure: undefined });
  expect(JSON.stringify(record.body)).toBe('{"error":13,"message":""}');
});

// oxfmt-ignore
test.for([
  ["ERR_NO_ROUTE", 403], ["ERR_METHOD_NOT_ALLOWED", 403], ["ERR_METHOD_UNKNOWN", 403], ["ERR_URL_TOO_LONG", 403],
  ["ERR_HEADER_TOO_LARGE", 403], ["ERR_REQUEST_TIMEOUT", 403], ["ERR_CROSS_SITE", 403],
  ["ERR_CREDENTIAL_MISSING", 400], ["ERR_STORE_UNAVAILABLE", 400], [undefined, 400],
] as const)("the status 403 of an error with the identifier %s becomes %i", ([errorCode, want]) => {
  const error = Object.assign(new ConnectError("", Code.PermissionDenied), { errorCode });
  expect(errorRecord(error, { httpStatus: 403, procedure: undefined }).httpStatus).toBe(want);
});
