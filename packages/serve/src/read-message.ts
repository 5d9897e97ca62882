import { type BodyReceiver, noBytes } from "@plantstore/http";
import { messageTooLargeError, type Rpc, type Wire } from "@plantstore/protocols";
import { exchangeOf, type ServedRequest } from "./request.ts";

/** A call with one message from the client. */
export interface MessageCall<M> extends BodyReader {
  readonly rpc: Rpc;
  /** Decodes the message. Returns a promise only if the message must be decompressed. */
  decode(body: Uint8Array): M | Promise<M>;
  run(message: M): void;
}

/** Reads a request body, either for a call or to find the call that the body names. */
export interface BodyReader extends BodyReceiver {
  readonly request: ServedRequest;
  readonly wire: Pick<Wire, "body">;
}

/** Reads a request body unless the request has no body or the wire ignores bodies. */
export function readBody(reader: BodyReader): void {
  const { body } = exchangeOf(reader.request);
  const plan = reader.wire.body;
  if (body === undefined || plan === undefined) reader.received(noBytes);
  else body.read(plan, reader);
}

/** Decodes a body, then runs the call unless the call has ended. A body above the limit is `undefined`. */
export function decodeBody<M>(call: MessageCall<M>, body: Uint8Array | undefined): void {
  const { request } = call;
  if (body === undefined) return request.fail(messageTooLargeError(call.rpc.options.readMaxBytes));
  let message: M | Promise<M>;
  try {
    message = call.decode(body);
  } catch (error) {
    return request.fail(error);
  }
  // Decompression is asynchronous. Uncompressed messages are decoded synchronously, which avoids a promise per call.
  if (!(message instanceof Promise)) return runUnlessDone(call, message);
  message.then(
    (decompressed) => runUnlessDone(call, decompressed),
    (error: unknown) => request.fail(error),
  );
}

function runUnlessDone<M>(call: MessageCall<M>, message: M): void {
  if (!call.request.isDone) call.run(message);
}
