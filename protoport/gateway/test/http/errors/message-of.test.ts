import { expect, test } from "vitest";
import { messageOf } from "../../../src/http/errors/index.ts";

test.each([
  { name: "an Error", thrown: new TypeError("no such order"), message: "no such order" },
  { name: "a thrown string", thrown: "no such order", message: "no such order" },
  { name: "undefined", thrown: undefined, message: "undefined" },
  { name: "an object", thrown: { message: "not an error" }, message: "[object Object]" },
])('for $name, messageOf returns "$message"', ({ thrown, message }) => {
  expect(messageOf(thrown)).toBe(message);
});
