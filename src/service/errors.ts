import { Code, ConnectError } from "@connectrpc/connect";
import type { PlantErrorCode } from "./error-code.ts";

// The `Retry-After` delay, in seconds. Queues drain and databases restart within seconds. Earlier retries add load.
const retrySoon: Readonly<Record<string, string>> = { "retry-after": "1" };

/** Returns `NotFound`, for a plant that does not exist or has already been deleted. */
export function plantNotFound(id: bigint): ConnectError {
  return errorOf("ERR_PLANT_NOT_FOUND", `plant ${id} not found`, Code.NotFound);
}

/** Returns `InvalidArgument`, for a request without an id. A missing id must never be interpreted as plant 0. */
export function idMissing(): ConnectError {
  return errorOf("ERR_PLANT_ID_MISSING", "id is missing", Code.InvalidArgument);
}

/** Returns `InvalidArgument`, for a key that is not a structured-field string of 1 to `maxChars` characters. */
export function idempotencyKeyMalformed(maxChars: number): ConnectError {
  const message = `the Idempotency-Key header must be a string of 1 to ${maxChars} characters in double quotes`;
  return errorOf("ERR_IDEMPOTENCY_KEY_INVALID", message, Code.InvalidArgument);
}

/** Returns `AlreadyExists`, for a key with another plant or subject. The message does not reveal which one differs. */
export function idempotencyKeyReused(): ConnectError {
  return errorOf("ERR_IDEMPOTENCY_KEY_REUSED", "the idempotency key belongs to another deletion", Code.AlreadyExists);
}

/** Returns `FailedPrecondition`, for a subject that cannot be stored unchanged and could match another subject. */
export function subjectNotRecordable(): ConnectError {
  const message =
    "an idempotency key requires a subject of at most 1,024 characters without U+0000 and lone surrogates";
  return errorOf("ERR_SUBJECT_NOT_RECORDABLE", message, Code.FailedPrecondition);
}

/** Returns `FailedPrecondition`, for a plant that a constraint or trigger protects. A retry would fail again. */
export function plantProtected(id: bigint, cause?: unknown): ConnectError {
  return errorOf(
    "ERR_PLANT_PROTECTED",
    `the database does not allow deleting plant ${id}`,
    Code.FailedPrecondition,
    cause,
  );
}

/** Returns `ResourceExhausted` with `Retry-After`, for a full queue. */
export function queueFull(): ConnectError {
  return errorOf("ERR_QUEUE_FULL", "too many deletions are queued", Code.ResourceExhausted, undefined, retrySoon);
}

/** Returns `Unavailable` with `Retry-After`, for a plant that was not deleted because the store is unavailable. */
export function storeUnavailable(cause?: unknown): ConnectError {
  const message = "the plant store cannot process the request at the moment";
  return errorOf("ERR_STORE_UNAVAILABLE", message, Code.Unavailable, cause, retrySoon);
}

/** Returns `Unavailable` with `Retry-After`, for a deletion that may have been committed. */
export function outcomeUnknown(cause?: unknown): ConnectError {
  const message = "the outcome of the deletion is unknown; repeating the request is safe";
  return errorOf("ERR_OUTCOME_UNKNOWN", message, Code.Unavailable, cause, retrySoon);
}

/**
 * Returns why the store did not delete a plant, for an operator. For example, another transaction has locked the plant.
 * Returns `undefined` for errors that do not come from the store.
 */
export function storeProblemOf(error: unknown): string | undefined {
  if (!(error instanceof ConnectError) || !("errorCode" in error) || !storeErrorCodes.has(error.errorCode))
    return undefined;
  const problem = error.cause instanceof Error ? error.cause.message : error.cause;
  return typeof problem === "string" ? problem.slice(0, maxProblemChars) : undefined;
}

/** Codes of errors whose `cause` is a store problem. Other errors, such as invalid messages, also have a `cause`. */
const storeErrorCodes: ReadonlySet<unknown> = new Set<PlantErrorCode>([
  "ERR_PLANT_PROTECTED",
  "ERR_STORE_UNAVAILABLE",
  "ERR_OUTCOME_UNKNOWN",
]);

// Maximum length of a message in a log line, in characters. Messages from triggers may have any length.
const maxProblemChars = 512;

function errorOf(
  errorCode: PlantErrorCode,
  message: string,
  code: Code,
  cause?: unknown,
  header?: Readonly<Record<string, string>>,
): ConnectError {
  return Object.assign(new ConnectError(message, code, header, undefined, cause), { errorCode });
}
