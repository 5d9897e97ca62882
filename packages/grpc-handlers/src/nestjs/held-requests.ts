/** The request stream that Nest passes to a method with `@GrpcStreamMethod`. */
interface BufferedRequests {
  /** Called by Nest once the method has subscribed to the requests. */
  drainBuffer(): void;
}

/** What pauses a grpc-js call's requests. */
interface PausableCall {
  pause(): unknown;
  resume(): unknown;
}

/** What Nest calls for an RPC: the guards, interceptors and pipes for a controller's method, and the method. */
export type MessageHandler = (data: object, metadata: object, call: PausableCall) => unknown;

/**
 * Returns a handler for requests that are read once the controller has subscribed to them. Nest buffers requests while
 * a guard or an interceptor waits, but drops them all if the client half-closes before it is done.
 */
export function holdRequests(handler: MessageHandler): MessageHandler {
  return (data, metadata, call) => handler(isBuffered(data) ? hold(data, call) : data, metadata, call);
}

function isBuffered(data: object): data is BufferedRequests {
  return "drainBuffer" in data;
}

function hold(requests: BufferedRequests, call: PausableCall): object {
  call.pause();
  const drainBuffer = (): void => {
    requests.drainBuffer();
    // Nest passes on the buffer at this time, too.
    setImmediate(() => call.resume());
  };
  return Object.create(requests, { drainBuffer: { value: drainBuffer } });
}
