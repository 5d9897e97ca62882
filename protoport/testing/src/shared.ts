import { afterAll, beforeAll } from "vitest";

/**
 * Opens a value before the tests of the surrounding group, and disposes of the value after these tests. The result has
 * the value's members, but only in tests and hooks, because the value is not open before.
 */
export function shared<Value extends AsyncDisposable | Disposable>(open: () => Value | Promise<Value>): Value {
  let value: Value | undefined;
  beforeAll(async () => void (value = await open()));
  afterAll(async () => {
    if (value !== undefined && Symbol.asyncDispose in value) await value[Symbol.asyncDispose]();
    else value?.[Symbol.dispose]();
  });
  const get = (_: object, name: string | symbol): unknown => {
    if (value === undefined) throw new Error("a shared value is used before its tests");
    const member: unknown = Reflect.get(value, name, value);
    return typeof member === "function" ? member.bind(value) : member;
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The proxy has the members of the value.
  return new Proxy({}, { get }) as Value;
}
