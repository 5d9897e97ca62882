import { messageOf } from "@plantstore/http";

/**
 * Thrown if a message cannot be sent with a rule. The message is the reason, for the caller. Converted to a
 * `ConnectError` with `InvalidArgument` unless another rule can send the message.
 */
export class Refusal extends Error {}

/** Runs a writer. @throws Refusal that names the field, if the writer throws */
export function refuseUnwritable<Value>(name: string, write: () => Value): Value {
  try {
    return write();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const problem = messageOf(error);
    throw new Refusal(name === "" ? problem : `${name}: ${problem}`);
  }
}
