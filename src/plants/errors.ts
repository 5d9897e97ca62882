import { Code, ConnectError } from "@connectrpc/connect";

// Seconds. A queue drains and a database restarts within a few seconds; asking sooner only adds load.
const retryAfterS = "1";

/** `NotFound`: no plant has this id, or it was deleted before. */
export function plantNotFound(id: bigint): ConnectError {
  return new ConnectError(`plant ${id} not found`, Code.NotFound);
}

/** `InvalidArgument`: the request names no plant. It must never be read as plant 0. */
export function idMissing(): ConnectError {
  return new ConnectError("id is missing", Code.InvalidArgument);
}

/** `FailedPrecondition`: a constraint or trigger of the database keeps this plant. Asking again does not help. */
export function plantKept(id: bigint, cause?: unknown): ConnectError {
  return new ConnectError(`the database keeps plant ${id}`, Code.FailedPrecondition, undefined, undefined, cause);
}

/** `ResourceExhausted` with `Retry-After`: as many deletions wait as the store takes. */
export function queueFull(): ConnectError {
  return new ConnectError("too many deletions are waiting", Code.ResourceExhausted, { "retry-after": retryAfterS });
}

/** `Unavailable` with `Retry-After`: the deletion was not done, because the store is away or closing. */
export function storeAway(cause?: unknown): ConnectError {
  const message = "the plant store cannot delete at the moment";
  return new ConnectError(message, Code.Unavailable, { "retry-after": retryAfterS }, undefined, cause);
}

/** `Unavailable` with `Retry-After`: a fault came between the deletion and its answer, so it may have been done. */
export function outcomeUnknown(cause?: unknown): ConnectError {
  const message = "the outcome of the deletion is unknown; repeating the request is safe";
  return new ConnectError(message, Code.Unavailable, { "retry-after": retryAfterS }, undefined, cause);
}

/**
 * A store cannot be opened, or its data cannot be worked with. The message is a sentence for the
 * operator, who can act on it: it names the file or server and never holds a password.
 */
export class StoreOpenError extends Error {
  override readonly name = "StoreOpenError";
}
