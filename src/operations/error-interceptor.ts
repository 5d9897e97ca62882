import {
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import type { Log } from "./log.ts";
import { faultMessage, isFault } from "./fault.ts";
import { requestIdOf } from "./request-id.ts";

/** Options of {@link createErrorInterceptor}. */
export interface ErrorInterceptorOptions {
  /** The log of faults, with the stack and the request id. */
  readonly log: Log;
}

type AnyRequest = UnaryRequest | StreamRequest;

/**
 * Creates the interceptor that makes every error safe to show; it must come before those whose errors it is to see.
 *
 * Intended errors, which are `ConnectError`s with a code that is not a fault, pass unchanged. A call that was given up
 * (deadline, cancellation) gets the reason of its signal, whatever error the handler made of it. Everything else
 * becomes `Internal` with a fixed message; the cause is only logged, under the request id.
 */
export function createErrorInterceptor({ log }: ErrorInterceptorOptions): Interceptor {
  return (next) => (request) => {
    const makeSafe = (reason: unknown): never => {
      throw safeError(reason, request, log);
    };
    // Not an async function: every call would pay for its promises, though few have an error.
    try {
      const response = next(request);
      return request.stream
        ? response.then((answer) => guard(answer, request, log), makeSafe)
        : response.then(undefined, makeSafe);
    } catch (reason) {
      return Promise.reject(safeError(reason, request, log));
    }
  };
}

function guard(
  response: UnaryResponse | StreamResponse,
  request: AnyRequest,
  log: Log,
): UnaryResponse | StreamResponse {
  return response.stream ? { ...response, message: guardStream(response.message, request, log) } : response;
}

// A streaming handler throws while its messages are read, long after `next` has returned.
async function* guardStream<T>(messages: AsyncIterable<T>, request: AnyRequest, log: Log): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (reason) {
    throw safeError(reason, request, log);
  }
}

function safeError(reason: unknown, request: AnyRequest, log: Log): ConnectError {
  if (reason instanceof ConnectError && !isFault(reason)) return reason;
  // fetch, timers and drivers reject with their own errors when their signal aborts.
  if (request.signal.aborted) return abortReason(request.signal);
  const requestId = requestIdOf(request.contextValues);
  log.error({ requestId, procedure: procedureOf(request), err: reason }, "fault in a handler");
  return new ConnectError(faultMessage, Code.Internal, undefined, undefined, reason);
}

function abortReason(signal: AbortSignal): ConnectError {
  const reason: unknown = signal.reason;
  if (reason instanceof ConnectError && !isFault(reason)) return reason;
  return new ConnectError("the call was cancelled", Code.Canceled, undefined, undefined, reason);
}

function procedureOf(request: AnyRequest): string {
  return `/${request.service.typeName}/${request.method.name}`;
}
