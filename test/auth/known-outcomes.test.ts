import { describe, expect, test } from "vitest";

import { KnownOutcomes } from "../../src/auth/known-outcomes.ts";
import type { TokenOutcome } from "../../src/auth/token-verifier.ts";

const hourMs = 3_600_000;
const good: TokenOutcome = { kind: "principal", subject: "ada", issuer: undefined, scopes: "all" };
const bad: TokenOutcome = { kind: "invalid", reason: "no" };

describe("KnownOutcomes", () => {
  test.each([
    { name: "knows an outcome until its time", given: { outcome: good, untilMs: Date.now() + hourMs }, want: good },
    {
      name: "does not take in an outcome whose time is over",
      given: { outcome: good, untilMs: Date.now() },
      want: undefined,
    },
    { name: "knows a refusal until its time", given: { outcome: bad, untilMs: Date.now() + hourMs }, want: bad },
    { name: "knows what holds for ever", given: { outcome: bad, untilMs: Number.POSITIVE_INFINITY }, want: bad },
  ])("$name", ({ given, want }) => {
    const known = new KnownOutcomes();
    known.set("digest", given);
    expect(known.get("digest")?.outcome).toEqual(want);
  });

  test.each([
    { name: "a good token that went bad", first: good, last: bad },
    { name: "a bad token that went good", first: bad, last: good },
  ])("knows the last outcome of $name", ({ first, last }) => {
    const known = new KnownOutcomes();
    known.set("digest", { outcome: first, untilMs: Date.now() + hourMs });
    known.set("digest", { outcome: last, untilMs: Date.now() + hourMs });
    expect(known.get("digest")?.outcome).toEqual(last);
  });

  test("keeps good tokens in a flood of bad ones", () => {
    const known = new KnownOutcomes();
    known.set("ada's", { outcome: good, untilMs: Date.now() + hourMs });
    for (let n = 0; n < 50_000; n += 1) known.set(String(n), { outcome: bad, untilMs: Date.now() + hourMs });
    expect(known.get("ada's")?.outcome).toEqual(good);
  });

  test("asks once for those who ask at a time, and again later", async () => {
    const known = new KnownOutcomes();
    let asked = 0;
    const ask = async (): Promise<TokenOutcome> => {
      asked += 1;
      return await Promise.resolve(good);
    };
    const outcomes = await Promise.all([
      known.askOnce("digest", ask),
      known.askOnce("digest", ask),
      known.askOnce("other", ask),
    ]);
    expect({ asked, outcomes }).toEqual({ asked: 2, outcomes: [good, good, good] });
    await known.askOnce("digest", ask);
    expect(asked).toBe(3);
  });

  test("asks again after asking failed", async () => {
    const known = new KnownOutcomes();
    await expect(known.askOnce("digest", () => Promise.reject(new Error("fault")))).rejects.toThrow("fault");
    expect(await known.askOnce("digest", () => Promise.resolve(good))).toEqual(good);
  });
});
