import { Code, ConnectError } from "@connectrpc/connect";

// In seconds. Queues drain and databases restart within a few seconds; retrying sooner only adds load.
const retryAfterS = "1";

/** Returns `NotFound`: there is no such plant, or it has already been deleted. */
export function plantNotFound(id: bigint): ConnectError {
  return new ConnectError(`plant ${id} not found`, Code.NotFound);
}

/** Returns `InvalidArgument`: the request has no id. This must never be read as plant 0. */
export function idMissing(): ConnectError {
  return new ConnectError("id is missing", Code.InvalidArgument);
}

/** Returns `InvalidArgument`: the `Idempotency-Key` field is not one structured-field string of 1 to `charsMax`. */
export function idempotencyKeyMalformed(charsMax: number): ConnectError {
  const message = `the Idempotency-Key header is not one string of 1 to ${charsMax} characters in double quotes`;
  return new ConnectError(message, Code.InvalidArgument);
}

/**
 * Returns `AlreadyExists`: the key has been used for the deletion of another plant, or by another subject. The caller
 * learns neither.
 */
export function idempotencyKeyTaken(): ConnectError {
  return new ConnectError("the idempotency key belongs to another deletion", Code.AlreadyExists);
}

/** Returns `FailedPrecondition`: the record could not tell this subject from another one. */
export function subjectNotRecordable(): ConnectError {
  const message = "an idempotency key needs a subject that can be recorded as it is";
  return new ConnectError(message, Code.FailedPrecondition);
}

/** Returns `FailedPrecondition`: a constraint or trigger of the database protects this plant. Retrying fails again. */
export function plantKept(id: bigint, cause?: unknown): ConnectError {
  return new ConnectError(`the database keeps plant ${id}`, Code.FailedPrecondition, undefined, undefined, cause);
}

/** Returns `ResourceExhausted` with `Retry-After`: the queue of the store is full. */
export function queueFull(): ConnectError {
  return new ConnectError("too many deletions are waiting", Code.ResourceExhausted, { "retry-after": retryAfterS });
}

/** Returns `Unavailable` with `Retry-After`: the plant was not deleted, as the store is unavailable or closing. */
export function storeAway(cause?: unknown): ConnectError {
  const message = "the plant store cannot delete at the moment";
  return new ConnectError(message, Code.Unavailable, { "retry-after": retryAfterS }, undefined, cause);
}

/** Returns `Unavailable` with `Retry-After`: a fault interrupted the deletion, which may have happened. */
export function outcomeUnknown(cause?: unknown): ConnectError {
  const message = "the outcome of the deletion is unknown; repeating the request is safe";
  return new ConnectError(message, Code.Unavailable, { "retry-after": retryAfterS }, undefined, cause);
}
