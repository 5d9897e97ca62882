import { withCode } from "../errors/index.ts";

/**
 * Returns a callback's result. Refuses a promise, because its value would be ignored, and its rejection would exit the
 * process. TypeScript allows an async function if the callback type returns nothing or any object.
 *
 * @param requirement - the start of the error message, such as `toError must be synchronous`
 * @throws TypeError with the code ERR_OPTIONS for a promise. The promise's rejection is ignored
 */
export function refusePromise<Result>(returned: Result, requirement: string): Result {
  if (typeof returned === "object" && returned !== null && "then" in returned) {
    // `Promise.resolve` also accepts a thenable from another library.
    Promise.resolve(returned).catch(() => undefined);
    throw withCode(new TypeError(`${requirement}, got a promise`), "ERR_OPTIONS");
  }
  return returned;
}
