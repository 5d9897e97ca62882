/** Returns a value that `await using` closes, also when the test fails. */
export const closing = <Value extends { close(): unknown }>(value: Value): Value & AsyncDisposable =>
  Object.assign(value, { [Symbol.asyncDispose]: async () => void (await value.close()) });
