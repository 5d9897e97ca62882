import { expect, test, vi } from "vitest";
import { readServerUrl } from "../../../../src/stores/postgres/server/server-url.ts";
import { retryForMs, retryTransientErrors, Session } from "../../../../src/stores/postgres/server/session.ts";

test("retryTransientErrors stops retrying at a limit after the first error", async () => {
  const session = new Session(readServerUrl("postgres://127.0.0.1:1/plants"));
  let nowMs = retryForMs;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  let attempts = 0;
  const work = (): Promise<never> => {
    if (attempts > 0) nowMs += retryForMs / 2;
    // Limited, because a mutant could retry forever.
    const code = ++attempts < 5 ? "40001" : "XX000";
    return Promise.reject(Object.assign(new Error("refused"), { code, severity: "ERROR" }));
  };
  await expect(retryTransientErrors(session, work)).rejects.toThrow("refused");
  expect(attempts).toBe(3);
});
