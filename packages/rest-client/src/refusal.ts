import { messageOf } from "@plantstore/gateway/internal/errors";

/**
 * Why a message cannot be sent as a rule says, in words for the program that calls: it never leaves this room, which
 * makes it a `ConnectError` of `InvalidArgument` before a request is sent.
 */
export class Refusal extends Error {}

/** Runs a writer, whose errors are about the message. @throws Refusal in their place, with the name of the field */
export function refuseUnwritable<Value>(name: string, write: () => Value): Value {
  try {
    return write();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const problem = messageOf(error);
    throw new Refusal(name === "" ? problem : `${name}: ${problem}`);
  }
}
