import { expect, test } from "vitest";
import { messageOf } from "../../src/errors/index.ts";

test.each([
  { thrown: new TypeError("no such order"), message: "no such order" },
  { thrown: "no such order", message: "no such order" },
  { thrown: undefined, message: "undefined" },
  { thrown: { message: "not an error" }, message: "[object Object]" },
])("the thrown value $thrown is described by messageOf", ({ thrown, message }) => {
  expect(messageOf(thrown)).toBe(message);
});
