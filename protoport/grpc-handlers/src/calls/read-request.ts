import { Code, ConnectError } from "@connectrpc/connect";
import { Envelope, type ForwardedMessage, toFault } from "@protoport/gateway/forward";
import type { AnyDefinition } from "./base-call.ts";

/**
 * Returns a function that reads a method's requests with its `requestDeserialize`.
 *
 * A request that cannot be read fails with `InvalidArgument`. A method's first error is also reported to `onFault`,
 * because the definition may be wrong. Later errors are not reported, because a client can repeat them.
 */
export function createRequestReader({
  requestDeserialize,
  path,
}: AnyDefinition): (message: ForwardedMessage) => unknown {
  let isReported = false;
  return (message) => {
    if (!(message instanceof Envelope)) throw new TypeError("a message that is decoded must be complete");
    const { buffer, byteOffset, byteLength } = message.bytes;
    try {
      return requestDeserialize(Buffer.from(buffer, byteOffset, byteLength));
    } catch (cause) {
      const text = "the request does not match its definition";
      const error = new ConnectError(text, Code.InvalidArgument, undefined, undefined, cause);
      if (isReported) throw error;
      isReported = true;
      throw toFault(error, { errorCode: "ERR_HANDLER_FAILED", what: `requestDeserialize of ${path} failed` });
    }
  };
}
