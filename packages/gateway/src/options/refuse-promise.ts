import { withCode } from "../errors/index.ts";

/**
 * Returns the result of a callback unless it is a promise: the decision of an async callback would be skipped, and an
 * unhandled rejection exits the process. TypeScript accepts an async function where a callback returns nothing or any
 * object, JavaScript everywhere.
 *
 * @param requirement - what the callback must do: `toError must return its result`
 * @throws TypeError with the code ERR_OPTIONS for a promise, whose rejection is then ignored
 */
export function refusePromise<Result>(returned: Result, requirement: string): Result {
  if (typeof returned !== "object" || returned === null || !("then" in returned)) return returned;
  // It may be another library's thenable.
  Promise.resolve(returned).catch(() => undefined);
  throw withCode(new TypeError(`${requirement}, got a promise`), "ERR_OPTIONS");
}
