import { expect, test, vi } from "vitest";
import { isProduction } from "../../src/errors/index.ts";

test("a runtime without a process is not in production", () => {
  vi.stubGlobal("process", undefined);
  let result: boolean | undefined;
  try {
    result = isProduction();
  } finally {
    vi.unstubAllGlobals();
  }
  expect(result).toBe(false);
});
