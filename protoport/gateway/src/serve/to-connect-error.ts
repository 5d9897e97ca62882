import { Code, ConnectError } from "@connectrpc/connect";
import { problem } from "../protobuf/index.ts";
import { type RequestFailure } from "../http/index.ts";

/**
 * Returns the error to respond with for any thrown value, in a form that every protocol can write. Only a
 * ConnectError's message is intended for clients. Other values are a {@link toFault fault}. Never throws.
 *
 * @param failure - the description of the failure if the thrown value is a fault
 */
export function toConnectError(thrown: unknown, failure: RequestFailure): ConnectError {
  return readConnectError(thrown) ?? toFault(thrown, failure);
}

/** A thrown value for `onFault`, and the description of the failure. */
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

/** Returns and removes the fault that caused an error. The program may throw the same error again. */
export function takeFault(error: ConnectError): Fault | undefined {
  const fault = faults.get(error);
  faults.delete(error);
  return fault;
}

/**
 * Returns a thrown ConnectError in a form that every protocol can write, if its details serialize. Returns `undefined`
 * for any other value, and for an error that cannot be read. Never throws.
 */
function readConnectError(thrown: unknown): ConnectError | undefined {
  try {
    return thrown instanceof ConnectError ? toWritable(thrown) : undefined;
  } catch {
    // Reading the value may throw, for example in a getter. Even `instanceof` may throw.
    return undefined;
  }
}

/** Returns an error with members of the declared types. JavaScript code or other servers may set other values. */
function toWritable(error: ConnectError): ConnectError {
  const { rawMessage, cause, isWireError } = error;
  const code = knownCodes.has(error.code) ? error.code : Code.Unknown;
  // A message that is not a string is not intended for clients. `new ConnectError(error)` would reveal a fault's
  // message.
  const text = typeof rawMessage === "string" ? rawMessage.toWellFormed() : internalError;
  const metadata = copyMetadata(error.metadata);
  const details = toDetails(error.details);
  const isSame = code === error.code && text === rawMessage;
  if (isSame && metadata === error.metadata && details === error.details) return error;
  return Object.assign(new ConnectError(text, code, metadata, [], cause ?? error), { details, isWireError });
}

/** Returns an error's metadata as `Headers`, or empty `Headers` for metadata that are not valid header fields. */
function copyMetadata(metadata: Headers): Headers {
  if (metadata instanceof Headers) return metadata;
  try {
    return new Headers(metadata);
  } catch {
    return new Headers();
  }
}

type Details = ConnectError["details"];

/** Returns the valid details. Returns the same array if all details are valid. */
function toDetails(details: Details): Details {
  if (!Array.isArray(details)) return [];
  return details.every(isDetail) ? details : details.filter(isDetail);
}

/** Returns whether a value is a detail with a message and its descriptor, or with a type name and bytes. */
function isDetail(detail: unknown): boolean {
  if (typeof detail !== "object" || detail === null) return false;
  if ("desc" in detail) return true;
  return "type" in detail && typeof detail.type === "string" && "value" in detail && detail.value instanceof Uint8Array;
}

// The values of the enum `Code` include names, which are filtered out.
const knownCodes: ReadonlySet<unknown> = new Set(Object.values(Code).filter((code) => typeof code === "number"));

const internalError = "internal error";

/** The abort reason for all successful calls. A new DOMException for each call would cost as much as ten aborts. */
export const completedReason: DOMException = new DOMException("This operation was aborted", "AbortError");
