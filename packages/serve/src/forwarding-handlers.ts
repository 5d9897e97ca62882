import type {
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
} from "@bufbuild/protobuf";
import type { ConnectRouter, ConnectRouterOptions, HandlerContext } from "@connectrpc/connect";
import { type Caller, Envelope, type Forwarder, type ForwardedMessage, oneMessage } from "@plantstore/protocols";
import { CallView } from "./call-view.ts";
import { requestOf } from "./create-rpcs.ts";
import { withForwarder } from "./forward.ts";
import { beginResponse } from "./serve-stream.ts";

/** Any RPC, as a union discriminated by `methodKind`. */
type AnyMethod = DescMethodUnary | DescMethodServerStreaming | DescMethodClientStreaming | DescMethodBiDiStreaming;

/**
 * Registers an RPC whose calls are forwarded. The gateway passes on the message bytes. For streams with interceptors,
 * and on Connect's own router, the registered handler passes on decoded messages.
 *
 * @param decoding - options for decoding all messages, for an RPC whose bytes must not be passed on
 */
export function registerForwarder(
  router: ConnectRouter,
  method: AnyMethod,
  forwarder: Forwarder,
  decoding?: Pick<ConnectRouterOptions, "binaryOptions">,
): void {
  const attach = <H extends object>(handler: H): H =>
    decoding === undefined ? withForwarder(handler, forwarder) : handler;
  switch (method.methodKind) {
    case "unary": {
      const handler = (message: Message, context: HandlerContext): Promise<Message> =>
        callUnary(forwarder, message, context);
      router.rpc(method, attach(handler), decoding);
      break;
    }
    case "server_streaming": {
      const handler = (message: Message, context: HandlerContext): AsyncIterable<Message> =>
        callStream(forwarder, oneMessage(message), context);
      router.rpc(method, attach(handler), decoding);
      break;
    }
    case "client_streaming": {
      const handler = async (messages: AsyncIterable<Message>, context: HandlerContext): Promise<Message> => {
        for await (const message of callStream(forwarder, messages, context)) return message;
        throw new TypeError("the forwarder returned no message");
      };
      router.rpc(method, attach(handler), decoding);
      break;
    }
    case "bidi_streaming": {
      const handler = (messages: AsyncIterable<Message>, context: HandlerContext): AsyncIterable<Message> =>
        callStream(forwarder, messages, context);
      router.rpc(method, attach(handler), decoding);
    }
  }
}

function callUnary(forwarder: Forwarder, message: Message, context: HandlerContext): Promise<Message> {
  const response = new Promise<Envelope>((resolve, reject) => {
    // A caller that takes no parts gets none.
    forwarder.unary(callerOf(context), forwarder.encode(message), { resolve, resolveParts: () => undefined, reject });
  });
  return response.then((envelope) => forwarder.decode(envelope));
}

function callStream(
  forwarder: Forwarder,
  messages: AsyncIterable<Message>,
  context: HandlerContext,
): AsyncIterable<Message> {
  const requests = map(messages, (message) => forwarder.encode(message));
  return map(forwarder.stream(callerOf(context), requests), (message) => decodeComplete(forwarder, message));
}

function callerOf(context: HandlerContext): Caller {
  return {
    request: requestOf(context),
    headers: context,
    // An interceptor may have replaced a spread copy's signal.
    signal: context instanceof CallView ? requestOf(context) : context.signal,
    takesParts: false,
    timeoutMs: () => context.timeoutMs(),
    begin: () => beginResponse(context),
  };
}

function decodeComplete(forwarder: Forwarder, message: ForwardedMessage): Message {
  if (message instanceof Envelope) return forwarder.decode(message);
  throw new TypeError("a message that is decoded must be complete");
}

async function* map<T, U>(items: AsyncIterable<T>, convert: (item: T) => U): AsyncGenerator<U> {
  for await (const item of items) yield convert(item);
}
