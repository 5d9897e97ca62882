import { withCode } from "../errors/index.ts";

/**
 * Returns the result of a callback, and refuses a promise: its decision would be ignored, and its rejection would exit
 * the process. TypeScript allows an async function if the callback type returns nothing or any object.
 *
 * @param requirement - what the callback must do: `toError must be synchronous`
 * @throws TypeError with the code ERR_OPTIONS for a promise; a rejection of that promise is ignored
 */
export function refusePromise<Result>(returned: Result, requirement: string): Result {
  if (typeof returned !== "object" || returned === null || !("then" in returned)) return returned;
  // `Promise.resolve` also accepts a thenable from another library.
  Promise.resolve(returned).catch(() => undefined);
  throw withCode(new TypeError(`${requirement}, got a promise`), "ERR_OPTIONS");
}
