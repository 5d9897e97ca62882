/**
 * Called with a fault on the server's side that no answer reveals, and a text that says what failed.
 *
 * Default: a warning of the process, or of the console where there is none, also emitted if this callback fails.
 */
export type OnFault = (error: unknown, what: string) => void;

/** Creates a function that reports faults to the program's `onFault` and never throws. */
export function createFaultReporter(onFault: OnFault = warn): OnFault {
  return (error, what) => {
    (async () => onFault(error, what))().catch((failure: unknown) => {
      warn(error, what);
      warn(failure, "onFault has failed");
    });
  };
}

/**
 * Wraps a callback of the program so that it can neither end the process nor change an answer. What it throws, or
 * rejects with, is reported once for each cause, because a broken callback may fail on every request.
 */
export function guardCallback<A extends readonly unknown[]>(
  name: string,
  callback: ((...args: A) => void) | undefined,
  report: OnFault,
): ((...args: A) => void) | undefined {
  if (callback === undefined) return undefined;
  const causes = new Set<string>();
  const failed = (error: unknown): void => {
    const cause = causeOf(error);
    if (causes.has(cause) || causes.size >= causesMax) return;
    causes.add(cause);
    report(error, `${name} has failed`);
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
  if (!isReadable(error)) return typeof error;
  const [place = ""] = /\n +at .*/.exec(error.stack ?? "") ?? [];
  return error.message + place;
}

/** How many causes are remembered for a callback. One that has more puts parts of requests into its messages. */
const causesMax = 64;

function warn(error: unknown, what: string): void {
  const warning = isReadable(error) ? error : new Error(what, { cause: error });
  if (globalThis.process?.emitWarning === undefined) console.warn(warning);
  else process.emitWarning(warning);
}

/**
 * Returns whether something is an Error whose text and stack can be read. Node prints warnings later, where a getter
 * that throws would end the process.
 */
function isReadable(error: unknown): error is Error {
  try {
    return error instanceof Error && typeof error.toString() === "string" && typeof (error.stack ?? "") === "string";
  } catch {
    return false;
  }
}
