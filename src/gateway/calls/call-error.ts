import { Code, ConnectError } from "@connectrpc/connect";

/** Returns the error to answer with for any thrown value; only the text of a ConnectError is meant for clients. */
export function toConnectError(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return wellFormed(thrown);
  return new ConnectError("internal error", Code.Internal, undefined, undefined, thrown);
}

/** Returns the error in a form that every protocol can write, whatever its text and code. */
export function wellFormed(error: ConnectError): ConnectError {
  const { rawMessage, metadata, cause, details } = error;
  const code = Code[error.code] === undefined ? Code.Unknown : error.code;
  if (code === error.code && rawMessage.isWellFormed()) return error;
  return Object.assign(new ConnectError(rawMessage.toWellFormed(), code, metadata, [], cause), { details });
}
