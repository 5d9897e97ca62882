import type { Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import type { FailedCall, SafeErrors } from "@protoport/telemetry/logs";

/**
 * Creates a Connect interceptor that hides internal errors from callers. A `ConnectError` is passed on, unless the code
 * is `Internal`, `Unknown` or `DataLoss`. Other errors are logged, and replaced with `Internal` and a fixed message.
 *
 * The interceptor must be the first interceptor, so that it handles errors from all other interceptors and from the
 * handler. Errors in the gateway's `admit` and in decoding a request bypass the interceptor, because the messages of
 * those errors are meant for callers.
 */
export function createErrorInterceptor(toSafeError: SafeErrors): Interceptor {
  return (next) => async (request) => {
    try {
      const response = await next(request);
      if (!response.stream) return response;
      // A streaming handler runs while its messages are read, after `next` has returned.
      return { ...response, message: withSafeErrors(response.message, request, toSafeError) };
    } catch (error) {
      throw toSafeError(error, toFailedCall(request));
    }
  };
}

async function* withSafeErrors<M>(
  messages: AsyncIterable<M>,
  request: StreamRequest | UnaryRequest,
  toSafeError: SafeErrors,
): AsyncGenerator<M> {
  try {
    yield* messages;
  } catch (error) {
    throw toSafeError(error, toFailedCall(request));
  }
}

function toFailedCall({ service, method, signal, contextValues }: StreamRequest | UnaryRequest): FailedCall {
  return { service, method, signal, values: contextValues };
}
