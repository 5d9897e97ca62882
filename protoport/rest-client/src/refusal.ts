import { messageOf } from "@protoport/gateway/errors";

/**
 * Thrown if a request message cannot be sent with a rule. The error's text is the reason. Unless another
 * rule can send the request message, the error becomes a `ConnectError` with `InvalidArgument`.
 */
export class RefusalError extends Error {}

/** Runs the writer for a field. @throws RefusalError that names the field if the writer throws */
export function refuseUnwritable<Value>(name: string, write: () => Value): Value {
  try {
    return write();
  } catch (error) {
    if (error instanceof RefusalError) throw error;
    const problem = messageOf(error);
    throw new RefusalError(name === "" ? problem : `${name}: ${problem}`);
  }
}
