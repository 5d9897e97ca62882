import { createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { requestIdOf } from "../../src/logs/request-id.ts";

test("one request keeps its id however often it is asked for", () => {
  const contextValues = createContextValues();
  expect(requestIdOf(contextValues)).toBe(requestIdOf(contextValues));
});

test("ten thousand requests have ten thousand ids", () => {
  const ids = Array.from({ length: 10_000 }, () => requestIdOf(createContextValues()));
  expect(new Set(ids).size).toBe(10_000);
});

test("an id is 16 hex digits of the process and a counter in base 36", () => {
  expect(requestIdOf(createContextValues())).toMatch(/^[0-9a-f]{16}-[0-9a-z]+$/);
});
