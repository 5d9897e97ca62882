import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { GatewayErrorCode } from "@protoport/gateway";
import { refuseUnknownOptions, required } from "@protoport/gateway/options";
import type { LogErrorCode } from "./error-code.ts";
import type { Log } from "./log.ts";
import { requestIdOf } from "./request-id.ts";

/** The message that clients get for every fault. The cause is logged with the request id. */
const faultMessage = "internal error";

/**
 * Returns whether an error is a fault, which is an error whose message is not intended for clients.
 *
 * Everything except a `ConnectError` is a fault. A `ConnectError` with the code `Internal`, `Unknown` or `DataLoss` is
 * a fault too, because libraries use these codes for messages from drivers and parsers.
 */
function isFault(reason: unknown): boolean {
  if (!(reason instanceof ConnectError)) return true;
  return isFaultCode(reason.code);
}

/** Returns whether a code means a fault: `Internal`, `Unknown` or `DataLoss`. */
export function isFaultCode(code: Code): boolean {
  return code === Code.Internal || code === Code.Unknown || code === Code.DataLoss;
}

/** Options for {@link createSafeErrors}. */
export interface SafeErrorsOptions {
  /** The log to which faults are written, with their stack and request id. */
  readonly log: Log;
}

/** The properties of a failed call: its handler's context, or an object that an interceptor creates. */
export type FailedCall = Pick<HandlerContext, "service" | "method" | "signal" | "values">;

/**
 * Converts an error thrown by a handler or an interceptor to the response error. Use the function as a gateway's
 * `toError`, or in an interceptor that throws the result.
 */
export type SafeErrors = (thrown: unknown, call: FailedCall) => ConnectError;

/**
 * Creates a {@link SafeErrors}, which makes every error safe to send and logs each fault once.
 *
 * The function returns a `ConnectError` unchanged if its code does not mean a fault, or if the error was converted
 * before. For a cancelled call, the function returns the reason of the call's signal, regardless of the thrown error.
 * Any other error becomes `Internal` with a fixed message. The cause is only logged, with the request id.
 *
 * @throws TypeError for unknown options
 */
export function createSafeErrors(options: SafeErrorsOptions): SafeErrors {
  refuseUnknownOptions(options, { log: required }, "createSafeErrors");
  const { log } = options;
  // Errors that were already converted, because an interceptor and the gateway's `toError` may both get the same error.
  const reported = new WeakSet<ConnectError>();
  return (thrown, call) => {
    if (thrown instanceof ConnectError && (!isFault(thrown) || reported.has(thrown))) return thrown;
    // The thrown error is ignored, because fetch, timers and drivers reject with their own errors on abort.
    if (call.signal.aborted) return abortError(call.signal);
    const errorCode: GatewayErrorCode = "ERR_HANDLER_FAILED";
    log.error(
      { errorCode, requestId: requestIdOf(call.values), procedure: procedureOfCall(call), err: thrown },
      "handler failed",
    );
    const error = new ConnectError(faultMessage, Code.Internal, undefined, undefined, thrown);
    reported.add(error);
    return Object.assign(error, { errorCode });
  };
}

function abortError(signal: AbortSignal): ConnectError {
  const reason: unknown = signal.reason;
  if (reason instanceof ConnectError && !isFault(reason)) return reason;
  const errorCode: LogErrorCode = "ERR_CALL_CANCELLED";
  const error = new ConnectError("the call was cancelled", Code.Canceled, undefined, undefined, reason);
  return Object.assign(error, { errorCode });
}

function procedureOfCall({ service, method }: FailedCall): string {
  return `/${service.typeName}/${method.name}`;
}
