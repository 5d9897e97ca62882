import { ConnectError } from "@connectrpc/connect";
import { within } from "../deadline.ts";

/** Waits until a signal has aborted, and returns why. */
export async function reasonOf(signal: AbortSignal): Promise<unknown> {
  const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  if (!signal.aborted) await within(aborted, "the signal of a call");
  return signal.reason;
}

/** The error that a call ends with; fails when it ends otherwise. */
export async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  const error: unknown = await within(
    call.then(
      () => undefined,
      (reason: unknown) => reason,
    ),
    "the end of a call",
  );
  if (error instanceof ConnectError) return error;
  throw new Error("the call did not fail as it should", { cause: error });
}
