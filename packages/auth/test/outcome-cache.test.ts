import { describe, expect, test } from "vitest";

import { OutcomeCache } from "../src/outcome-cache.ts";
import type { TokenOutcome } from "../src/token-verifier.ts";

const good: TokenOutcome = { kind: "principal", subject: "ada", issuer: undefined, scopes: "all" };
const bad: TokenOutcome = { kind: "invalid", reason: "no" };

describe("OutcomeCache", () => {
  test.each([
    { name: "knows a good token until its time", outcome: good, untilMs: 1000, nowMs: 999, want: good },
    { name: "knows a good token no longer at its time", outcome: good, untilMs: 1000, nowMs: 1000, want: undefined },
    { name: "knows a bad token until its time", outcome: bad, untilMs: 1000, nowMs: 999, want: bad },
    { name: "knows a bad token no longer at its time", outcome: bad, untilMs: 1000, nowMs: 1000, want: undefined },
  ])("$name", ({ outcome, untilMs, nowMs, want }) => {
    const known = new OutcomeCache();
    known.set("digest", { outcome, untilMs });
    expect(known.get("digest", nowMs)?.outcome).toEqual(want);
  });

  test.each([
    { name: "a good token that went bad", first: good, last: bad },
    { name: "a bad token that went good", first: bad, last: good },
  ])("knows the last outcome of $name", ({ first, last }) => {
    const known = new OutcomeCache();
    known.set("digest", { outcome: first, untilMs: 1000 });
    known.set("digest", { outcome: last, untilMs: 1000 });
    expect(known.get("digest", 0)?.outcome).toEqual(last);
  });

  test("never calls a token bad again that went good, however long ago", () => {
    const known = new OutcomeCache();
    known.set("ada's", { outcome: bad, untilMs: 1000 });
    known.set("ada's", { outcome: good, untilMs: 1000 });
    for (let n = 0; n < 20_000; n += 1) known.set(String(n), { outcome: good, untilMs: 1000 });
    expect(known.get("ada's", 0)).toBeUndefined();
  });

  test.each([
    { name: "the last ten thousand good tokens, and twice that at most", outcome: good, least: 10_000, most: 20_000 },
    { name: "the last thousand bad tokens, and twice that at most", outcome: bad, least: 1000, most: 2000 },
  ])("keeps $name", ({ outcome, least, most }) => {
    const known = new OutcomeCache();
    for (let n = 0; n < 50_500; n += 1) known.set(String(n), { outcome, untilMs: 1000 });
    // From the last one back: what is used is young again, and takes the place of what was verified before.
    const last = Array.from({ length: 50_500 }, (_, n) => String(50_499 - n));
    const kept = last.findIndex((digest) => known.get(digest, 0) === undefined);
    expect(kept).toBeGreaterThanOrEqual(least);
    expect(kept).toBeLessThanOrEqual(most);
  });

  test.each([
    { name: "good", outcome: good },
    { name: "bad", outcome: bad },
  ])("keeps a $name token that is used, however many come after it", ({ outcome }) => {
    const known = new OutcomeCache();
    known.set("ada's", { outcome, untilMs: 1000 });
    for (let n = 0; n < 50_000; n += 1) {
      known.set(String(n), { outcome, untilMs: 1000 });
      known.get("ada's", 0);
    }
    expect(known.get("ada's", 0)?.outcome).toEqual(outcome);
  });

  test("forgets nothing when a token is verified again", () => {
    const known = new OutcomeCache();
    for (let n = 0; n < 20_000; n += 1) known.set(String(n), { outcome: good, untilMs: 1000 });
    for (let again = 0; again < 2; again += 1) known.set("19999", { outcome: good, untilMs: 1000 });
    expect(known.get("0", 0)?.outcome).toEqual(good);
  });

  test("calls a token bad whose good outcome is of the old generation", () => {
    const known = new OutcomeCache();
    known.set("ada's", { outcome: good, untilMs: 1000 });
    for (let n = 0; n < 10_000; n += 1) known.set(String(n), { outcome: good, untilMs: 1000 });
    known.set("ada's", { outcome: bad, untilMs: 1000 });
    expect(known.get("ada's", 0)?.outcome).toEqual(bad);
  });

  test("keeps good tokens in a flood of bad ones", () => {
    const known = new OutcomeCache();
    known.set("ada's", { outcome: good, untilMs: 1000 });
    for (let n = 0; n < 50_000; n += 1) known.set(String(n), { outcome: bad, untilMs: 1000 });
    expect(known.get("ada's", 0)?.outcome).toEqual(good);
  });

  test("asks once for all callers of one moment, and again later", async () => {
    const known = new OutcomeCache();
    let asked = 0;
    const ask = async (): Promise<TokenOutcome> => {
      asked += 1;
      return await Promise.resolve(good);
    };
    const outcomes = await Promise.all([
      known.verifyOnce("digest", ask),
      known.verifyOnce("digest", ask),
      known.verifyOnce("other", ask),
    ]);
    expect({ asked, outcomes }).toEqual({ asked: 2, outcomes: [good, good, good] });
    await known.verifyOnce("digest", ask);
    expect(asked).toBe(3);
  });

  test("asks again after asking failed", async () => {
    const known = new OutcomeCache();
    await expect(known.verifyOnce("digest", () => Promise.reject(new Error("fault")))).rejects.toThrow("fault");
    expect(await known.verifyOnce("digest", () => Promise.resolve(good))).toEqual(good);
  });
});
