import { describe, expect, test } from "vitest";

import { evaluateIntrospection } from "../../src/introspection/introspected-token.ts";

const nowS = Math.floor(Date.now() / 1000);

function untilMsOf(response: object): number | undefined {
  const requirements = { audiences: undefined, subjectClaim: undefined, enforceScopes: false };
  return evaluateIntrospection({ ...response }, "https://id.example", requirements)?.untilMs;
}

describe("an introspection response", () => {
  test.each([
    { name: "for an active token is cached for 30 s", response: { active: true, sub: "ada" }, seconds: 30 },
    {
      name: "for an active token that expires later is cached for 30 s",
      response: { active: true, sub: "ada", exp: nowS + 600 },
      seconds: 30,
    },
    { name: "for an inactive token is cached for 10 s", response: { active: false }, seconds: 10 },
  ])("$name", ({ response, seconds }) => {
    const before = performance.now();
    const untilMs = untilMsOf(response);
    expect(untilMs).toBeGreaterThanOrEqual(before + seconds * 1000);
    expect(untilMs).toBeLessThanOrEqual(performance.now() + seconds * 1000);
  });

  test("for an active token is cached until the token expires", () => {
    // The two clocks are read one after the other, so their difference is not exact.
    const remainingMs = (untilMsOf({ active: true, sub: "ada", exp: nowS + 10 }) ?? 0) - performance.now();
    expect(remainingMs).toBeLessThanOrEqual((nowS + 10) * 1000 - Date.now() + 5);
    expect(remainingMs).toBeGreaterThan(0);
  });

  test.each([
    { name: "has expired", response: { exp: nowS - 600 } },
    { name: "is not valid yet", response: { nbf: nowS + 600 } },
    { name: "has an infinite exp", response: JSON.parse('{"exp":1e999}') },
    { name: "has an nbf that is not a number", response: { nbf: "now" } },
    { name: "has an empty subject", response: { sub: "" } },
  ])("for an active token that $name is not cached", ({ response }) => {
    expect(untilMsOf({ active: true, sub: "ada", ...response })).toBe(0);
  });
});
