import { withCode } from "../errors/index.ts";

/**
 * Returns a callback's result, and refuses a promise. An async callback's decision would be ignored, and an unhandled
 * rejection would exit the process. TypeScript does not prevent an async function if the callback's type returns
 * nothing or any object, and JavaScript never does.
 *
 * @param requirement - what the callback must do: `toError must be synchronous`
 * @throws TypeError with the code ERR_OPTIONS for a promise; a rejection of that promise is ignored
 */
export function refusePromise<Result>(returned: Result, requirement: string): Result {
  if (typeof returned !== "object" || returned === null || !("then" in returned)) return returned;
  // The result may be another library's thenable.
  Promise.resolve(returned).catch(() => undefined);
  throw withCode(new TypeError(`${requirement}, got a promise`), "ERR_OPTIONS");
}
