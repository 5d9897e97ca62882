import { ConnectError } from "@connectrpc/connect";

/** Returns the error with which a promise rejects. Fails when the promise resolves. */
export const refusalOf = (promise: Promise<unknown>): Promise<ConnectError> =>
  promise.then(
    (value) => {
      throw new Error(`expected a refusal, got ${String(value)}`);
    },
    (reason: unknown) => ConnectError.from(reason),
  );
