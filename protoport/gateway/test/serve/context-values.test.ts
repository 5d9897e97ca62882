import { createContextKey } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CallValues } from "../../src/serve/call-view.ts";

const color = createContextKey("green", { description: "color" });
const twin = createContextKey("red", { description: "color" });

test("get() returns a key's default before set() and after delete()", () => {
  const values = new CallValues();
  const results = [values.get(color)];
  results.push(values.set(color, "blue").get(color), values.get(twin));
  results.push(values.delete(color).get(color));
  expect(results).toEqual(["green", "blue", "red", "green"]);
});

test("get() returns undefined for a key that is set to undefined", () => {
  const key = createContextKey<string | undefined>("green");
  expect(new CallValues().set(key, undefined).get(key)).toBeUndefined();
});
