/** The request stream that Nest passes to a method with `@GrpcStreamMethod`. */
interface BufferedRequests {
  /** Passes on the buffered requests. Nest calls the function once the method has subscribed to the requests. */
  drainBuffer(): void;
}

/** The members of a grpc-js call that pause its requests. */
interface PausableCall {
  pause(): unknown;
  resume(): unknown;
}

/** Nest's function for an RPC, which runs guards, interceptors, pipes, and a controller's method. */
export type MessageHandler = (data: object, metadata: object, call: PausableCall) => unknown;

/**
 * Returns a handler that reads requests once the controller has subscribed to them. Nest buffers requests while a guard
 * or an interceptor waits, but drops all buffered requests if the client half-closes meanwhile.
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
    // Runs after the `setImmediate` callback in which Nest passes on the buffered requests.
    setImmediate(() => call.resume());
  };
  return Object.create(requests, { drainBuffer: { value: drainBuffer } });
}
