import { Code, ConnectError } from "@connectrpc/connect";
import type { PlantErrorCode } from "./error-code.ts";

// In seconds. Queues drain and databases restart within a few seconds. Retrying sooner would only add load.
const retrySoon: Readonly<Record<string, string>> = { "retry-after": "1" };

/** Returns `NotFound`: the plant does not exist, or has already been deleted. */
export function plantNotFound(id: bigint): ConnectError {
  return errorOf("ERR_PLANT_NOT_FOUND", `plant ${id} not found`, Code.NotFound);
}

/** Returns `InvalidArgument`: the request has no id, which must never be interpreted as plant 0. */
export function idMissing(): ConnectError {
  return errorOf("ERR_PLANT_ID_MISSING", "id is missing", Code.InvalidArgument);
}

/**
 * Returns `InvalidArgument`: the `Idempotency-Key` field is not a structured-field string with 1 to `charsMax`
 * characters.
 */
export function idempotencyKeyMalformed(charsMax: number): ConnectError {
  const message = `the Idempotency-Key header must be a string of 1 to ${charsMax} characters in double quotes`;
  return errorOf("ERR_IDEMPOTENCY_KEY_INVALID", message, Code.InvalidArgument);
}

/**
 * Returns `AlreadyExists`: the key has been used for another plant, or by another subject. The message does not reveal
 * which.
 */
export function idempotencyKeyReused(): ConnectError {
  return errorOf("ERR_IDEMPOTENCY_KEY_REUSED", "the idempotency key belongs to another deletion", Code.AlreadyExists);
}

/** Returns `FailedPrecondition`: the record cannot store this subject unchanged, so it could match another subject. */
export function subjectNotRecordable(): ConnectError {
  const message =
    "an idempotency key requires a subject of at most 1,024 characters without U+0000 and lone surrogates";
  return errorOf("ERR_SUBJECT_NOT_RECORDABLE", message, Code.FailedPrecondition);
}

/** Returns `FailedPrecondition`: a constraint or trigger in the database protects this plant. Retrying fails again. */
export function plantProtected(id: bigint, cause?: unknown): ConnectError {
  return errorOf(
    "ERR_PLANT_PROTECTED",
    `the database does not allow deleting plant ${id}`,
    Code.FailedPrecondition,
    cause,
  );
}

/** Returns `ResourceExhausted` with `Retry-After`: the store's queue is full. */
export function queueFull(): ConnectError {
  return errorOf("ERR_QUEUE_FULL", "too many deletions are queued", Code.ResourceExhausted, undefined, retrySoon);
}

/** Returns `Unavailable` with `Retry-After`: the plant was not deleted, because the store is unavailable or closing. */
export function storeUnavailable(cause?: unknown): ConnectError {
  const message = "the plant store cannot process the request at the moment";
  return errorOf("ERR_STORE_UNAVAILABLE", message, Code.Unavailable, cause, retrySoon);
}

/** Returns `Unavailable` with `Retry-After`: an error interrupted the deletion, which may have been committed. */
export function outcomeUnknown(cause?: unknown): ConnectError {
  const message = "the outcome of the deletion is unknown; repeating the request is safe";
  return errorOf("ERR_OUTCOME_UNKNOWN", message, Code.Unavailable, cause, retrySoon);
}

/**
 * Returns why the store did not do what a call requested, for an operator, such as that another transaction has locked
 * the plant. Returns `undefined` for errors from elsewhere.
 */
export function storeProblemOf(error: unknown): string | undefined {
  if (!(error instanceof ConnectError) || !("errorCode" in error) || !storeErrorCodes.has(error.errorCode))
    return undefined;
  // An unknown outcome may be caused by a later attempt's error.
  const problem = storeProblemOf(error.cause) ?? (error.cause instanceof Error ? error.cause.message : error.cause);
  return typeof problem === "string" ? problem.slice(0, problemCharsMax) : undefined;
}

/** The codes for errors whose cause is a store problem. Other errors, such as invalid messages, have causes too. */
const storeErrorCodes: ReadonlySet<unknown> = new Set<PlantErrorCode>([
  "ERR_PLANT_PROTECTED",
  "ERR_STORE_UNAVAILABLE",
  "ERR_OUTCOME_UNKNOWN",
]);

// The longest message in a log line, in characters. Trigger messages have any length.
const problemCharsMax = 512;

function errorOf(
  errorCode: PlantErrorCode,
  message: string,
  code: Code,
  cause?: unknown,
  header?: Readonly<Record<string, string>>,
): ConnectError {
  return Object.assign(new ConnectError(message, code, header, undefined, cause), { errorCode });
}
