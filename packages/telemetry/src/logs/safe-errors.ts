import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { GatewayErrorCode } from "@plantstore/gateway";
import { refuseUnknownOptions, required } from "@plantstore/gateway/options";
import type { LogErrorCode } from "./error-code.ts";
import type { Log } from "./log.ts";
import { faultMessage, isFault } from "./fault.ts";
import { requestIdOf } from "./request-id.ts";

/** Options of {@link createSafeErrors}. */
export interface SafeErrorsOptions {
  /** The log of faults, with the stack and the request id. */
  readonly log: Log;
}

/** The call that has failed: the context of its handler, or what an interceptor knows of it. */
export type FailedCall = Pick<HandlerContext, "service" | "method" | "signal" | "values">;

/**
 * Returns the error to respond with for what a handler or an interceptor has thrown: the `toError` of a gateway, and
 * what an interceptor throws instead.
 */
export type SafeErrors = (thrown: unknown, call: FailedCall) => ConnectError;

/**
 * Creates a {@link SafeErrors}, which makes every error safe to show and logs each fault once.
 *
 * Intended errors, which are `ConnectError`s with a code that is not a fault, pass unchanged, and so do errors that it
 * has returned before. A cancelled call gets the reason of its signal, whatever error the handler made of it. Everything
 * else becomes `Internal` with a fixed message; the cause is only logged, under the request id.
 *
 * @throws TypeError for options that do not exist
 */
export function createSafeErrors(options: SafeErrorsOptions): SafeErrors {
  refuseUnknownOptions(options, { log: required }, "createSafeErrors");
  const { log } = options;
  // An interceptor and the `toError` of the gateway see the same error in turn.
  const reported = new WeakSet<ConnectError>();
  return (thrown, call) => {
    if (thrown instanceof ConnectError && (!isFault(thrown) || reported.has(thrown))) return thrown;
    // fetch, timers and drivers reject with their own errors when their signal aborts.
    if (call.signal.aborted) return abortReason(call.signal);
    const errorCode: GatewayErrorCode = "ERR_HANDLER_FAILED";
    log.error(
      { errorCode, requestId: requestIdOf(call.values), procedure: procedureOf(call), err: thrown },
      "handler failed",
    );
    const error = new ConnectError(faultMessage, Code.Internal, undefined, undefined, thrown);
    reported.add(error);
    return Object.assign(error, { errorCode });
  };
}

function abortReason(signal: AbortSignal): ConnectError {
  const reason: unknown = signal.reason;
  if (reason instanceof ConnectError && !isFault(reason)) return reason;
  const errorCode: LogErrorCode = "ERR_CALL_CANCELLED";
  const error = new ConnectError("the call was cancelled", Code.Canceled, undefined, undefined, reason);
  return Object.assign(error, { errorCode });
}

function procedureOf({ service, method }: FailedCall): string {
  return `/${service.typeName}/${method.name}`;
}
