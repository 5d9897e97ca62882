import { messageOf } from "@plantstore/gateway/internal/errors";

/**
 * Thrown if a message cannot be sent with a rule, with a reason for the calling program. This module converts it to a
 * `ConnectError` with `InvalidArgument` before a request is sent.
 */
export class Refusal extends Error {}

/** Runs a writer. @throws Refusal for its errors, with the name of the field */
export function refuseUnwritable<Value>(name: string, write: () => Value): Value {
  try {
    return write();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const problem = messageOf(error);
    throw new Refusal(name === "" ? problem : `${name}: ${problem}`);
  }
}
