import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorRecord } from "../../src/service/error-record.ts";
// oxfmt-ignore
import { idempotencyKeyReused, idMissing, outcomeUnknown, plantNotFound, plantProtected, queueFull, storeProblemOf,
  storeUnavailable, subjectNotRecordable } from "../../src/service/errors.ts";

const cause = new Error("x".repeat(600));
const problem = "x".repeat(512);

// oxfmt-ignore
test.for([
  ["ERR_PLANT_NOT_FOUND", plantNotFound(7n), Code.NotFound, null, undefined],
  ["ERR_PLANT_ID_MISSING", idMissing(), Code.InvalidArgument, null, undefined],
  ["ERR_IDEMPOTENCY_KEY_REUSED", idempotencyKeyReused(), Code.AlreadyExists, null, undefined],
  ["ERR_SUBJECT_NOT_RECORDABLE", subjectNotRecordable(), Code.FailedPrecondition, null, undefined],
  ["ERR_PLANT_PROTECTED", plantProtected(7n, cause), Code.FailedPrecondition, null, problem],
  ["ERR_QUEUE_FULL", queueFull(), Code.ResourceExhausted, "1", undefined],
  ["ERR_STORE_UNAVAILABLE", storeUnavailable(cause), Code.Unavailable, "1", problem],
  ["ERR_OUTCOME_UNKNOWN", outcomeUnknown(cause), Code.Unavailable, "1", problem],
] as const)("%s has its code, its delay before a retry, and the store's problem", ([errorCode, error, ...want]) => {
  expect(error).toMatchObject({ errorCode });
  expect([error.code, error.metadata.get("retry-after"), storeProblemOf(error)]).toEqual(want);
});

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
