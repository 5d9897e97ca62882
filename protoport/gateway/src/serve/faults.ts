import type { Failure, GatewayErrorCode, RequestFailure } from "../http/index.ts";
import type { FailedRequest } from "../protocols/index.ts";

/**
 * Called with a fault on the server's side, and a description of what failed. No response reveals the fault.
 *
 * @param request - the affected request, or `undefined` for a fault in a connection or a callback
 * @param errorCode - the fault's identifier, such as `ERR_HANDLER_FAILED`
 */
export type OnFault = (
  error: unknown,
  what: string,
  request: FailedRequest | undefined,
  errorCode: GatewayErrorCode,
) => void;

/** Reports a fault to {@link OnFault}. */
export type FaultReporter = (error: unknown, failure: Failure, request?: FailedRequest) => void;

/** The failure to report if a response cannot be sent. */
export const responseFailure: RequestFailure = {
  errorCode: "ERR_RESPONSE_FAILED",
  what: "cannot write the response",
};
/** The failure to report if HTTP forbids a response header field, and the response is sent without the field. */
export const fieldFailure: Failure = { errorCode: "ERR_HEADER_FIELD", what: "cannot send a response header field" };
/** The failure to report if a request fails without a more specific cause. */
export const requestFailure: RequestFailure = {
  errorCode: "ERR_REQUEST_FAILED",
  what: "cannot process the request",
};

/** Creates a function that reports faults to `onFault`, or by default to standard error. The function never throws. */
export function createFaultReporter(onFault?: OnFault): FaultReporter {
  const print = createFaultPrinter();
  if (onFault === undefined) return print;
  return (error, failure, request) => {
    (async () => onFault(error, failure.what, request, failure.errorCode))().catch((thrown: unknown) => {
      print(error, failure, request);
      print(thrown, callbackFailure("onFault"));
    });
  };
}

/** Returns the failure to report when a callback of the program throws or rejects. */
export function callbackFailure(name: string): RequestFailure {
  return { errorCode: "ERR_CALLBACK_FAILED", what: `${name} failed` };
}

/**
 * Wraps a callback from the program. The wrapped callback can neither exit the process nor change a response. Thrown
 * errors and rejections are reported once per cause, because a broken callback may fail on every request.
 */
export function guardCallback<A extends readonly unknown[]>(
  name: string,
  callback: ((...args: A) => void) | undefined,
  report: FaultReporter,
): ((...args: A) => void) | undefined {
  if (callback === undefined) return undefined;
  const causes = new Set<string>();
  const reportOnce = (error: unknown): void => {
    const cause = causeOf(error);
    if (causes.has(cause) || causes.size >= maxCauses) return;
    causes.add(cause);
    report(error, callbackFailure(name));
  };
  return (...args) => {
    try {
      // A callback with the return type void may still be an async function.
      const returned: unknown = callback(...args);
      if (returned instanceof Promise) returned.catch(reportOnce);
    } catch (error) {
      reportOnce(error);
    }
  };
}

/** Returns an error's message and the top line of the error's stack. */
function causeOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return typeof error;
    const [place = ""] = /\n +at .*/.exec(error.stack ?? "") ?? [];
    return error.message + place;
  } catch {
    return typeof error;
  }
}

/** Maximum number of reported causes per callback. More causes probably differ only in request data. */
const maxCauses = 64;

/** Maximum number of faults printed in {@link printingMs}, so that a broken handler does not fill the disk. */
const maxPrinted = 20;
/** Milliseconds after which the limit for printed faults is reset. */
const printingMs = 10_000;
/** Maximum number of characters printed per error, about fifty lines. An error may quote a complete body. */
const maxPrintedLength = 4096;
/** Maximum number of causes printed per error. A store's error may contain a driver's error. */
const maxPrintedCauses = 5;

/** Creates a function that prints faults on standard error, or on the platform's console. The function never throws. */
function createFaultPrinter(): FaultReporter {
  let intervalStartMs = Number.NEGATIVE_INFINITY;
  let printed = 0;
  return (error, { errorCode, what }, request) => {
    const nowMs = performance.now();
    if (nowMs - intervalStartMs >= printingMs) {
      intervalStartMs = nowMs;
      printed = 0;
    }
    printed += 1;
    if (printed > maxPrinted) return;
    const { procedure, requestId } = request ?? {};
    const location = procedure === undefined ? "" : ` in ${procedure}`;
    const id = requestId === undefined ? "" : `, request ${requestId}`;
    const last =
      printed === maxPrinted
        ? `\nfurther errors are not printed for ${printingMs / 1000} s; set onFault to receive all of them`
        : "";
    console.error(`[${errorCode}] ${what}${location}${id}\n${stackOf(error)}${last}`);
  };
}

/**
 * Returns the indented stacks of an error and its causes. Text in an indented stack cannot imitate a separate log line.
 * Other properties, which may contain the request and its credential, are omitted. Never throws.
 */
function stackOf(error: unknown, causes = 0): string {
  try {
    if (typeof error !== "object" || error === null) return `    ${typeof error}: ${printable(String(error))}`;
    const { stack, cause }: { readonly stack?: unknown; readonly cause?: unknown } = error;
    const ownLines = `    ${typeof stack === "string" ? printable(stack) : "an object without a stack"}`;
    return cause === undefined || causes === maxPrintedCauses
      ? ownLines
      : `${ownLines}\n  caused by\n${stackOf(cause, causes + 1)}`;
  } catch {
    // Getters in the program's error may throw.
    return "    an error that cannot be read";
  }
}

// Replaces control characters and characters that change the text direction, which could overwrite terminal output.
function printable(text: string): string {
  return text
    .slice(0, maxPrintedLength)
    .replaceAll(/[^\P{C}\n]/gu, "\ufffd")
    .replaceAll("\n", "\n    ");
}
