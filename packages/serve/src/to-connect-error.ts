import { Code, ConnectError } from "@connectrpc/connect";
import { problem } from "@plantstore/protobuf";
import { type RequestFailure } from "@plantstore/http";

/**
 * Returns the error to respond with for any thrown value, in a form that every protocol can write. Only a
 * ConnectError's message is intended for clients. Anything else is a {@link toFault fault}. Never throws.
 *
 * @param failure - the description if it is a fault
 */
export function toConnectError(thrown: unknown, failure: RequestFailure): ConnectError {
  return readConnectError(thrown) ?? toFault(thrown, failure);
}

/** A thrown value to report to `onFault`, and what failed. */
interface Fault {
  readonly thrown: unknown;
  readonly failure: RequestFailure;
}

const faults = new WeakMap<ConnectError, Fault>();

/** Returns the error to respond with for a fault, and stores the fault for {@link takeFault}. Never throws. */
export function toFault(thrown: unknown, failure: RequestFailure): ConnectError {
  const error = readConnectError(thrown) ?? problem(failure.errorCode, internalError, { cause: thrown });
  faults.set(error, { thrown, failure });
  return error;
}

/** Returns and removes the fault that caused an error, because the program may throw the same error again. */
export function takeFault(error: ConnectError): Fault | undefined {
  const fault = faults.get(error);
  faults.delete(error);
  return fault;
}

/**
 * Returns a thrown ConnectError in a form that every protocol can write, unless a detail does not serialize, or
 * `undefined` for anything else, and for an error that cannot be read. Never throws.
 */
function readConnectError(thrown: unknown): ConnectError | undefined {
  try {
    return thrown instanceof ConnectError ? toWritable(thrown) : undefined;
  } catch {
    // Reading the value may throw, even `instanceof`, for example in a getter.
    return undefined;
  }
}

/**
 * Returns an error whose members have the types that ConnectError declares. JavaScript applications and other servers
 * may have set other values.
 */
function toWritable(error: ConnectError): ConnectError {
  const { rawMessage, cause, isWireError } = error;
  const code = codes.has(error.code) ? error.code : Code.Unknown;
  // Messages that are not strings are not intended for clients. `new ConnectError(error)` would reveal a fault's
  // message.
  const text = typeof rawMessage === "string" ? rawMessage.toWellFormed() : internalError;
  const metadata = toHeaders(error.metadata);
  const details = toDetails(error.details);
  const isSame = code === error.code && text === rawMessage;
  if (isSame && metadata === error.metadata && details === error.details) return error;
  return Object.assign(new ConnectError(text, code, metadata, [], cause ?? error), { details, isWireError });
}

/** Returns metadata, unchanged if possible. Empty if they are not valid header fields. */
function toHeaders(metadata: Headers): Headers {
  if (metadata instanceof Headers) return metadata;
  try {
    return new Headers(metadata);
  } catch {
    return new Headers();
  }
}

type Details = ConnectError["details"];

/** Returns the valid details: the same array if all are valid. */
function toDetails(details: Details): Details {
  if (!Array.isArray(details)) return [];
  return details.every(isDetail) ? details : details.filter(isDetail);
}

/** Returns whether a value is a message with its type, or a message's bytes. */
function isDetail(detail: unknown): boolean {
  if (typeof detail !== "object" || detail === null) return false;
  if ("desc" in detail) return true;
  return "type" in detail && typeof detail.type === "string" && "value" in detail && detail.value instanceof Uint8Array;
}

// `Code` also maps the code names to their numbers.
const codes: ReadonlySet<unknown> = new Set(Object.values(Code).filter((code) => typeof code === "number"));

const internalError = "internal error";

/** The abort reason for every call that succeeded. Shared, because a new DOMException costs as much as ten aborts. */
export const completedReason: DOMException = new DOMException("This operation was aborted", "AbortError");
