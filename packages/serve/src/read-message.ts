import { type BodyReceiver, noBytes } from "@plantstore/http";
import { messageTooLarge, type Rpc, type Wire } from "@plantstore/protocols";
import { exchangeOf, type ServedRequest } from "./request.ts";

/** A call whose client sends one message. */
export interface MessageCall<M> extends BodyReader {
  readonly rpc: Rpc;
  /** Decodes the message. Returns a promise only if it must be decompressed. */
  decode(body: Uint8Array): M | Promise<M>;
  /** Runs the call with the message. */
  run(message: M): void;
}

/** A body's reader: a call, or the search for the call that the body names. */
export interface BodyReader extends BodyReceiver {
  readonly request: ServedRequest;
  readonly wire: Pick<Wire, "body">;
}

/** Reads a request body unless there is none or it is ignored. */
export function readBody(reader: BodyReader): void {
  const { body } = exchangeOf(reader.request);
  const plan = reader.wire.body;
  if (body === undefined || plan === undefined) reader.received(noBytes);
  else body.read(plan, reader);
}

/**
 * Decodes the message in a body, and runs the call with it unless the call has ended in the meantime.
 *
 * @param body - `undefined` if it exceeds the limit
 */
export function decodeBody<M>(call: MessageCall<M>, body: Uint8Array | undefined): void {
  const { request } = call;
  if (body === undefined) return request.fail(messageTooLarge(call.rpc.options.readMaxBytes));
  let message: M | Promise<M>;
  try {
    message = call.decode(body);
  } catch (error) {
    return request.fail(error);
  }
  // Decompression is asynchronous. Everything else decodes synchronously, which avoids a promise per call.
  if (!(message instanceof Promise)) return runUnlessDone(call, message);
  message.then(
    (decompressed) => runUnlessDone(call, decompressed),
    (error: unknown) => request.fail(error),
  );
}

function runUnlessDone<M>(call: MessageCall<M>, message: M): void {
  if (!call.request.isDone) call.run(message);
}
