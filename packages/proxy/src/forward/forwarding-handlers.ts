import type {
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
} from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { Envelope, type ForwardedMessage, oneMessage } from "@plantstore/gateway/internal/protocols";
import { beginResponse, type Caller, CallView, type Forwarder, requestOf } from "@plantstore/gateway/internal/serve";

/** Any RPC, as a union discriminated by `methodKind`. */
type AnyMethod = DescMethodUnary | DescMethodServerStreaming | DescMethodClientStreaming | DescMethodBiDiStreaming;

/** Registers a handler that forwards its calls, with decoded messages. Used if there are interceptors. */
export function registerForwarder(router: ConnectRouter, method: AnyMethod, forwarder: Forwarder): void {
  switch (method.methodKind) {
    case "unary":
      router.rpc(method, (message, context) => callUnary(forwarder, message, context));
      break;
    case "server_streaming":
      router.rpc(method, (message, context) => callStream(forwarder, oneMessage(message), context));
      break;
    case "client_streaming":
      router.rpc(method, async (messages, context) => {
        for await (const message of callStream(forwarder, messages, context)) return message;
        throw new TypeError("the forwarder returned no message");
      });
      break;
    case "bidi_streaming":
      router.rpc(method, (messages, context) => callStream(forwarder, messages, context));
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
    // An interceptor may have replaced the signal of a spread copy.
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
