import { createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { requestIdOf } from "../../src/logs/request-id.ts";

test("requestIdOf returns the same id for the same request", () => {
  const contextValues = createContextValues();
  expect(requestIdOf(contextValues)).toBe(requestIdOf(contextValues));
});

test("requestIdOf returns a different id for each request", () => {
  const ids = Array.from({ length: 10_000 }, () => requestIdOf(createContextValues()));
  expect(new Set(ids).size).toBe(10_000);
});

test("a request id consists of 16 hex digits and a counter", () => {
  expect(requestIdOf(createContextValues())).toMatch(/^[0-9a-f]{16}-[0-9a-z]+$/);
});
