import { Code, ConnectError } from "@connectrpc/connect";

/**
 * Returns the error to answer with for any thrown value, in a form that every protocol can write. Only the text of a
 * ConnectError is meant for clients; anything else is a {@link toFault fault}. Never throws.
 *
 * @param what - what has failed, if it is a fault
 */
export function toConnectError(thrown: unknown, what: string): ConnectError {
  return readConnectError(thrown) ?? toFault(thrown, what);
}

/** Something thrown that `onFault` is told of, and what has failed. */
interface Fault {
  readonly thrown: unknown;
  readonly what: string;
}

const faults = new WeakMap<ConnectError, Fault>();

/** Returns the error to answer with for a fault, which {@link takeFault} then knows. Never throws. */
export function toFault(thrown: unknown, what: string): ConnectError {
  const error =
    readConnectError(thrown) ?? new ConnectError(internalError, Code.Internal, undefined, undefined, thrown);
  faults.set(error, { thrown, what });
  return error;
}

/** Returns the fault behind an error; only once, as the program may throw the same error again. */
export function takeFault(error: ConnectError): Fault | undefined {
  const fault = faults.get(error);
  faults.delete(error);
  return fault;
}

/**
 * Returns a thrown ConnectError in a form that every protocol can write, unless a detail does not serialize; `undefined`
 * for anything else, and for an error that cannot be read. Never throws.
 */
function readConnectError(thrown: unknown): ConnectError | undefined {
  try {
    return thrown instanceof ConnectError && hasParts(thrown) ? toWritable(thrown) : undefined;
  } catch {
    // Even asking for its class may fail, for example in a getter.
    return undefined;
  }
}

/**
 * Returns whether an error has the parts that its type says: programs without types may have given anything. What is
 * not a string was not written for clients, for example: `new ConnectError(error)` would tell them the text of a fault.
 */
function hasParts({ rawMessage, metadata, details }: { readonly [Part in keyof ConnectError]: unknown }): boolean {
  if (typeof rawMessage !== "string" || !(metadata instanceof Headers)) return false;
  return Array.isArray(details) && details.every(isDetail);
}

/** Returns whether something is a message with its type, or the bytes of one. */
function isDetail(detail: unknown): boolean {
  if (typeof detail !== "object" || detail === null) return false;
  if ("desc" in detail) return true;
  return "type" in detail && typeof detail.type === "string" && "value" in detail && detail.value instanceof Uint8Array;
}

/** Returns an error with a code that there is, which another server's need not be, and a text that UTF-8 can hold. */
function toWritable(error: ConnectError): ConnectError {
  const { rawMessage, metadata, details, cause, isWireError } = error;
  const code = codes.has(error.code) ? error.code : Code.Unknown;
  const text = rawMessage.toWellFormed();
  if (code === error.code && text === rawMessage) return error;
  return Object.assign(new ConnectError(text, code, metadata, [], cause ?? error), { details, isWireError });
}

// `Code` also maps the names of the codes to their numbers.
const codes: ReadonlySet<unknown> = new Set(Object.values(Code).filter((code) => typeof code === "number"));

const internalError = "internal error";
