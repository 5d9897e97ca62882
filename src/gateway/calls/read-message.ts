import type { Message } from "@bufbuild/protobuf";
import { type BodyReceiver, noBytes } from "../carriers/index.ts";
import { messageTooLarge, type Rpc, type Wire } from "../protocols/index.ts";
import { exchangeOf, type ServedRequest } from "./request.ts";

/** A call whose client sends one message. */
export interface MessageCall extends BodyReceiver {
  readonly request: ServedRequest;
  readonly rpc: Rpc;
  readonly wire: Wire;
  /** Runs the call with the message. */
  run(message: Message): void;
}

/** Reads the body of a call, which receives it; nothing is read if there is none, or if it has no meaning. */
export function readBody(call: MessageCall): void {
  const { body } = exchangeOf(call.request);
  const plan = call.wire.body;
  if (body === undefined || plan === undefined) call.received(noBytes);
  else body.read(plan, call);
}

/**
 * Decodes the message in a body, and runs the call with it unless the call has ended meanwhile.
 *
 * @param body - `undefined` when it exceeds the limit
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
  if (!(message instanceof Promise)) return runOpen(call, message);
  message.then(
    (decompressed) => runOpen(call, decompressed),
    (error: unknown) => request.fail(error),
  );
}

function runOpen(call: MessageCall, message: Message): void {
  if (!call.request.done) call.run(message);
}
