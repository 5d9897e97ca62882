import { ConnectError } from "@connectrpc/connect";

/** The error that a promise is rejected with. Fails when it is not. */
export function refusalOf(promise: Promise<unknown>): Promise<ConnectError> {
  return promise.then(
    (value) => {
      throw new Error(`expected a refusal, got ${String(value)}`);
    },
    (reason: unknown) => ConnectError.from(reason),
  );
}
