import { withCode } from "../errors/index.ts";

/**
 * Returns what a callback of the program has returned, unless it is a promise: what the callback decides would be
 * skipped, and a rejection that nobody handles exits the process. TypeScript accepts an async function where a callback
 * returns nothing or any object, JavaScript everywhere.
 *
 * @param demand - what the callback must do: `toError must return its result`
 * @throws TypeError with the code ERR_OPTIONS for a promise, whose rejection is then ignored
 */
export function refusePromise<Result>(returned: Result, demand: string): Result {
  if (typeof returned !== "object" || returned === null || !("then" in returned)) return returned;
  // It may be another library's thenable.
  Promise.resolve(returned).catch(() => undefined);
  throw withCode(new TypeError(`${demand}, got a promise`), "ERR_OPTIONS");
}
