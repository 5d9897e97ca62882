import type { Failure, GatewayErrorCode, RequestFailure } from "../errors/index.ts";
import type { FaultyRequest } from "./hooks.ts";

/**
 * Called with a fault on the server's side, which no answer reveals, and a text that says what failed.
 *
 * @param request - the request that it failed for; `undefined` for a fault of a connection or of a callback
 * @param errorCode - the identifier of what failed, such as `ERR_HANDLER_FAILED`
 */
export type OnFault = (
  error: unknown,
  what: string,
  request: FaultyRequest | undefined,
  errorCode: GatewayErrorCode,
) => void;

/** Reports a fault to {@link OnFault}. */
export type FaultReporter = (error: unknown, failure: Failure, request?: FaultyRequest) => void;

/** What has failed where a response cannot be sent. */
export const responseNotWritten: RequestFailure = {
  errorCode: "ERR_ANSWER_FAILED",
  what: "cannot write the response",
};
/** What has failed where nothing more is known. */
export const requestFailed: RequestFailure = {
  errorCode: "ERR_REQUEST_FAILED",
  what: "cannot process the request",
};

/** Creates a function that reports faults to the program's `onFault`, by default to standard error, and never throws. */
export function createFaultReporter(onFault?: OnFault): FaultReporter {
  const print = createFaultPrinter();
  if (onFault === undefined) return print;
  return (error, failure, request) => {
    (async () => onFault(error, failure.what, request, failure.errorCode))().catch((thrown: unknown) => {
      print(error, failure, request);
      print(thrown, callbackFailed("onFault"));
    });
  };
}

/** What has failed where a callback of the program has thrown. */
export function callbackFailed(name: string): RequestFailure {
  return { errorCode: "ERR_CALLBACK_FAILED", what: `${name} failed` };
}

/**
 * Wraps a callback of the program so that it can neither end the process nor change an answer. What it throws, or
 * rejects with, is reported once for each cause, because a broken callback may fail on every request.
 */
export function guardCallback<A extends readonly unknown[]>(
  name: string,
  callback: ((...args: A) => void) | undefined,
  report: FaultReporter,
): ((...args: A) => void) | undefined {
  if (callback === undefined) return undefined;
  const causes = new Set<string>();
  const failed = (error: unknown): void => {
    const cause = causeOf(error);
    if (causes.has(cause) || causes.size >= causesMax) return;
    causes.add(cause);
    report(error, callbackFailed(name));
  };
  return (...args) => {
    try {
      // A callback typed to return nothing may still be an async function.
      const returned: unknown = callback(...args);
      if (returned instanceof Promise) returned.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}

/** Returns the message of an error and the line of code that threw it, whatever called that. */
function causeOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return typeof error;
    const [place = ""] = /\n +at .*/.exec(error.stack ?? "") ?? [];
    return error.message + place;
  } catch {
    return typeof error;
  }
}

/** How many causes are remembered for a callback. One that has more puts parts of requests into its messages. */
const causesMax = 64;

/** How many faults are printed in {@link printingMs}: a broken handler fails in every call, and must not fill a disk. */
const printedMax = 20;
/** Milliseconds after which as many faults are printed again. */
const printingMs = 10_000;
/** Characters of an error that are printed: some fifty lines. It may quote a whole body. */
const printedLengthMax = 4096;
/** How many causes of an error are printed: enough for a driver's error within a store's. */
const printedCausesMax = 5;

/** Creates a function that prints faults on standard error, or the console of the platform. It never throws. */
function createFaultPrinter(): FaultReporter {
  let sinceMs = Number.NEGATIVE_INFINITY;
  let printed = 0;
  return (error, { errorCode, what }, request) => {
    const nowMs = performance.now();
    if (nowMs - sinceMs >= printingMs) {
      sinceMs = nowMs;
      printed = 0;
    }
    printed += 1;
    if (printed > printedMax) return;
    const { procedure, requestId } = request ?? {};
    const place = procedure === undefined ? "" : ` in ${procedure}`;
    const id = requestId === undefined ? "" : `, request ${requestId}`;
    const last =
      printed === printedMax ? `\nfurther errors are not printed for ${printingMs / 1000} s; set onFault to receive all of them` : "";
    console.error(`[${errorCode}] ${what}${place}${id}\n${stackOf(error)}${last}`);
  };
}

/**
 * Returns the stacks of an error and of its causes, indented, so that no text in them looks like a line of its own.
 * Nothing else of them: other properties may hold the request, and with it a credential. Never throws.
 */
function stackOf(error: unknown, causes = 0): string {
  try {
    if (typeof error !== "object" || error === null) return `    ${typeof error}: ${printable(String(error))}`;
    const { stack, cause }: { readonly stack?: unknown; readonly cause?: unknown } = error;
    const own = `    ${typeof stack === "string" ? printable(stack) : "an object without a stack"}`;
    return cause === undefined || causes === printedCausesMax
      ? own
      : `${own}\n  caused by\n${stackOf(cause, causes + 1)}`;
  } catch {
    // A getter of the program may throw.
    return "    an error that cannot be read";
  }
}

// Control characters, and those that change the direction of a line, could rewrite what else is on a terminal.
function printable(text: string): string {
  return text
    .slice(0, printedLengthMax)
    .replaceAll(/[^\P{C}\n]/gu, "\ufffd")
    .replaceAll("\n", "\n    ");
}
