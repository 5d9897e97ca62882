import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { GatewayErrorCode } from "@plantstore/gateway";
import type { OperatorErrorCode } from "../inputs/index.ts";
import type { Log } from "./log.ts";
import { faultMessage, isFault } from "./fault.ts";
import { requestIdOf } from "./request-id.ts";

/** Options of {@link createSafeErrors}. */
export interface SafeErrorsOptions {
  /** The log of faults, with the stack and the request id. */
  readonly log: Log;
}

/** Returns the error to answer with for what a handler or an interceptor has thrown: the `toError` of a gateway. */
export type SafeErrors = (thrown: unknown, context: HandlerContext) => ConnectError;

/**
 * Creates the `toError` of a gateway that makes every error safe to show.
 *
 * Intended errors, which are `ConnectError`s with a code that is not a fault, pass unchanged. A call that was given up
 * gets the reason of its signal, whatever error the handler made of it. Everything else becomes `Internal` with a fixed
 * message; the cause is only logged, under the request id.
 */
export function createSafeErrors({ log }: SafeErrorsOptions): SafeErrors {
  return (thrown, context) => {
    if (thrown instanceof ConnectError && !isFault(thrown)) return thrown;
    // fetch, timers and drivers reject with their own errors when their signal aborts.
    if (context.signal.aborted) return abortReason(context.signal);
    const errorCode: GatewayErrorCode = "ERR_HANDLER_FAILED";
    log.error(
      { errorCode, requestId: requestIdOf(context.values), procedure: procedureOf(context), err: thrown },
      "fault in a handler",
    );
    return Object.assign(new ConnectError(faultMessage, Code.Internal, undefined, undefined, thrown), { errorCode });
  };
}

function abortReason(signal: AbortSignal): ConnectError {
  const reason: unknown = signal.reason;
  if (reason instanceof ConnectError && !isFault(reason)) return reason;
  const errorCode: OperatorErrorCode = "ERR_CALL_CANCELLED";
  const error = new ConnectError("the call was cancelled", Code.Canceled, undefined, undefined, reason);
  return Object.assign(error, { errorCode });
}

function procedureOf({ service, method }: HandlerContext): string {
  return `/${service.typeName}/${method.name}`;
}
