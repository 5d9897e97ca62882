import { expect, test } from "vitest";
import { messageOf } from "../../src/errors/index.ts";

test.each([
  { name: "the message of an error", thrown: new TypeError("no such order"), message: "no such order" },
  { name: "a thrown string", thrown: "no such order", message: "no such order" },
  { name: "undefined", thrown: undefined, message: "undefined" },
  { name: "[object Object] for an object", thrown: { message: "not an error" }, message: "[object Object]" },
])("messageOf returns $name", ({ thrown, message }) => {
  expect(messageOf(thrown)).toBe(message);
});
