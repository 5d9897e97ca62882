import { expect, test, vi } from "vitest";
import { isProduction } from "../../../src/http/errors/index.ts";

test("isProduction() returns false in a runtime without a process object", () => {
  vi.stubGlobal("process", undefined);
  let result: boolean | undefined;
  try {
    result = isProduction();
  } finally {
    vi.unstubAllGlobals();
  }
  expect(result).toBe(false);
});
