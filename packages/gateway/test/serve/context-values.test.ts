import { createContextKey } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CallValues } from "../../src/serve/context-values.ts";

const color = createContextKey("green", { description: "color" });
const twin = createContextKey("red", { description: "color" });

test("a value is its key's default until it is set, and again once it is deleted", () => {
  const values = new CallValues();
  const seen = [values.get(color)];
  seen.push(values.set(color, "blue").get(color), values.get(twin));
  seen.push(values.delete(color).get(color));
  expect(seen).toEqual(["green", "blue", "red", "green"]);
});

test("a value that was set to undefined is not the default", () => {
  const key = createContextKey<string | undefined>("green");
  expect(new CallValues().set(key, undefined).get(key)).toBeUndefined();
});
