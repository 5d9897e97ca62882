import type { Message } from "@bufbuild/protobuf";
import { type BodyReceiver, noBytes } from "../exchange/index.ts";
import { messageTooLarge, type Rpc, type Wire } from "../protocols/index.ts";
import { exchangeOf, type ServedRequest } from "./request.ts";

/** A call whose client sends one message. */
export interface MessageCall extends BodyReader {
  readonly rpc: Rpc;
  readonly wire: Wire;
  /** Runs the call with the message. */
  run(message: Message): void;
}

/** A reader of a body: a call, or the search for the call that the body names. */
export interface BodyReader extends BodyReceiver {
  readonly request: ServedRequest;
  readonly wire: Pick<Wire, "body">;
}

/** Reads the body of a request unless there is none or it is ignored. */
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
export function decodeBody(call: MessageCall, body: Uint8Array | undefined): void {
  const { request } = call;
  if (body === undefined) return request.fail(messageTooLarge(call.rpc.options.readMaxBytes));
  let message: Message | Promise<Message>;
  try {
    message = call.wire.readMessage(body);
  } catch (error) {
    return request.fail(error);
  }
  // Decompression is asynchronous; everything else decodes synchronously, which avoids a promise per call.
  if (!(message instanceof Promise)) return runUnlessDone(call, message);
  message.then(
    (decompressed) => runUnlessDone(call, decompressed),
    (error: unknown) => request.fail(error),
  );
}

/** Runs the call with a large message, whose parts are read while it is forwarded. */
export function runLarge(call: MessageCall, start: Uint8Array, rest: AsyncIterable<Uint8Array>): void {
  let message: Message | undefined;
  try {
    message = call.wire.readLargeMessage?.(start, rest);
  } catch (error) {
    return call.request.fail(error);
  }
  if (message !== undefined) runUnlessDone(call, message);
}

function runUnlessDone(call: MessageCall, message: Message): void {
  if (!call.request.isDone) call.run(message);
}
