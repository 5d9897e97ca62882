import { Code, ConnectError } from "@connectrpc/connect";

/**
 * Returns the error to answer with for any thrown value, in a form that every protocol can write, whatever its text and
 * code. Only the text of a ConnectError is meant for clients.
 */
export function toConnectError(thrown: unknown): ConnectError {
  if (!(thrown instanceof ConnectError)) {
    return new ConnectError("internal error", Code.Internal, undefined, undefined, thrown);
  }
  const { rawMessage, metadata, cause, details } = thrown;
  const code = Code[thrown.code] === undefined ? Code.Unknown : thrown.code;
  if (code === thrown.code && rawMessage.isWellFormed()) return thrown;
  return Object.assign(new ConnectError(rawMessage.toWellFormed(), code, metadata, [], cause), { details });
}
