import { expect, test } from "vitest";
import { evaluateIntrospection } from "../../src/introspection/introspection-verifier.ts";

const nowS = Math.floor(Date.now() / 1000);

function untilMsOf(response: object): number | undefined {
  const requirements = { audiences: undefined, subjectClaim: undefined, enforceScopes: false };
  return evaluateIntrospection({ ...response }, "https://id.example", requirements)?.untilMs;
}

test.each([
  ["is 30 s for an active token", { active: true, sub: "ada" }, 30],
  ["is 30 s for an active token that expires later", { active: true, sub: "ada", exp: nowS + 600 }, 30],
  ["is 10 s for an inactive token", { active: false }, 10],
])("the cache time of an introspection response %s", (_name, response, seconds) => {
  const before = performance.now();
  const untilMs = untilMsOf(response);
  expect(untilMs).toBeGreaterThanOrEqual(before + seconds * 1000);
  expect(untilMs).toBeLessThanOrEqual(performance.now() + seconds * 1000);
});

test("the cache time of an introspection response is at most the remaining lifetime of an active token", () => {
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
])("the cache time of an introspection response is zero for an active token (it $name)", ({ response }) => {
  expect(untilMsOf({ active: true, sub: "ada", ...response })).toBe(0);
});
