import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
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
