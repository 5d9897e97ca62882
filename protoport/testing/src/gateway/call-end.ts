import { ConnectError } from "@connectrpc/connect";
import { within } from "../deadline.ts";

/** Waits until a signal is aborted, and returns the reason. */
export async function reasonOf(signal: AbortSignal): Promise<unknown> {
  const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  if (!signal.aborted) await within(aborted, "the signal of a call");
  return signal.reason;
}

/** Returns a failed call's error. @throws Error if the call succeeds or fails with another error */
export async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  const ended: Promise<unknown> = call.then(() => undefined).catch((reason: unknown) => reason);
  const error = await within(ended, "the end of a call");
  if (error instanceof ConnectError) return error;
  throw new Error("the call must fail with a ConnectError", { cause: error });
}
