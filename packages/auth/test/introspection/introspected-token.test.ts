import { describe, expect, test } from "vitest";

import { evaluateIntrospection } from "../../src/introspection/introspected-token.ts";

const nowS = Math.floor(Date.now() / 1000);

function untilMsOf(answer: object): number | undefined {
  return evaluateIntrospection({ ...answer }, "https://id.example", { audiences: undefined, enforceScopes: false })
    ?.untilMs;
}

describe("an answer of an introspection endpoint", () => {
  test.each([
    { name: "of an active token is believed for 30 s", answer: { active: true, sub: "ada" }, seconds: 30 },
    {
      name: "of an active token is believed for 30 s where it expires later",
      answer: { active: true, sub: "ada", exp: nowS + 600 },
      seconds: 30,
    },
    { name: "of a token that is not active is believed for 10 s", answer: { active: false }, seconds: 10 },
  ])("$name", ({ answer, seconds }) => {
    const before = performance.now();
    const untilMs = untilMsOf(answer);
    expect(untilMs).toBeGreaterThanOrEqual(before + seconds * 1000);
    expect(untilMs).toBeLessThanOrEqual(performance.now() + seconds * 1000);
  });

  test("of an active token is believed until it expires, where that is sooner", () => {
    // One clock is read before the other.
    const leftMs = (untilMsOf({ active: true, sub: "ada", exp: nowS + 10 }) ?? 0) - performance.now();
    expect(leftMs).toBeLessThanOrEqual((nowS + 10) * 1000 - Date.now() + 5);
    expect(leftMs).toBeGreaterThan(0);
  });

  test.each([
    { name: "has expired", answer: { exp: nowS - 600 } },
    { name: "begins later", answer: { nbf: nowS + 600 } },
    { name: "expires at no time that can be written", answer: JSON.parse('{"exp":1e999}') },
    { name: "begins at no time", answer: { nbf: "now" } },
    { name: "names nobody", answer: { sub: "" } },
  ])("is not remembered of an active token that $name", ({ answer }) => {
    expect(untilMsOf({ active: true, sub: "ada", ...answer })).toBe(0);
  });
});
