import { expect, test } from "vitest";
import { OutcomeCache } from "../src/outcome-cache.ts";
import type { TokenOutcome } from "../src/token-verifier.ts";

const valid: TokenOutcome = { kind: "principal", subject: "ada", issuer: undefined, scopes: "all" };
const rejected: TokenOutcome = { kind: "invalid", reason: "no" };

test.each(
  // oxfmt-ignore
  [
    { name: "returns a valid token before it expires", outcome: valid, untilMs: 1000, nowMs: 999, want: valid },
    { name: "does not return a valid token when it has expired", outcome: valid, untilMs: 1000, nowMs: 1000,
      want: undefined },
    { name: "returns a rejected token before it expires", outcome: rejected, untilMs: 1000, nowMs: 999,
      want: rejected },
    { name: "does not return a rejected token when it has expired", outcome: rejected, untilMs: 1000, nowMs: 1000,
      want: undefined },
    { name: "does not return a rejected token after the clock was set back", outcome: rejected, fromMs: 500,
      untilMs: 1000, nowMs: 499, want: undefined },
    { name: "returns a rejected token in the millisecond of its rejection", outcome: rejected, fromMs: 500,
      untilMs: 1000, nowMs: 500, want: rejected },
  ],
)("OutcomeCache $name", ({ want, nowMs, ...entry }) => {
  const cache = new OutcomeCache();
  cache.set("digest", entry);
  expect(cache.get("digest", nowMs)?.outcome).toEqual(want);
});

test.each([
  { name: "a valid token that was rejected later", first: valid, last: rejected },
  { name: "a rejected token that became valid", first: rejected, last: valid },
])("OutcomeCache returns the last outcome for $name from the cache", ({ first, last }) => {
  const cache = new OutcomeCache();
  cache.set("digest", { outcome: first, untilMs: 1000 });
  cache.set("digest", { outcome: last, untilMs: 1000 });
  expect(cache.get("digest", 0)?.outcome).toEqual(last);
});

test("OutcomeCache does not return an older rejection of an evicted token", () => {
  const cache = new OutcomeCache();
  cache.set("ada's", { outcome: rejected, untilMs: 1000 });
  cache.set("ada's", { outcome: valid, untilMs: 1000 });
  for (let n = 0; n < 20_000; n += 1) cache.set(String(n), { outcome: valid, untilMs: 1000 });
  expect(cache.get("ada's", 0)).toBeUndefined();
});

test.each([
  { name: "10,000 to 20,000 valid tokens", outcome: valid, least: 10_000, most: 20_000 },
  { name: "1000 to 2000 rejected tokens", outcome: rejected, least: 1000, most: 2000 },
])("OutcomeCache keeps the last $name in memory", ({ outcome, least, most }) => {
  const cache = new OutcomeCache();
  for (let n = 0; n < 50_500; n += 1) cache.set(String(n), { outcome, untilMs: 1000 });
  // Backwards from the last token, because a hit moves to the young generation and may evict older tokens.
  const last = Array.from({ length: 50_500 }, (_, n) => String(50_499 - n));
  const size = last.findIndex((digest) => cache.get(digest, 0) === undefined);
  expect(size).toBeGreaterThanOrEqual(least);
  expect(size).toBeLessThanOrEqual(most);
});

test.each([
  { name: "valid", outcome: valid },
  { name: "rejected", outcome: rejected },
])("OutcomeCache keeps a $name token that is used repeatedly", ({ outcome }) => {
  const cache = new OutcomeCache();
  cache.set("ada's", { outcome, untilMs: 1000 });
  for (let n = 0; n < 50_000; n += 1) {
    cache.set(String(n), { outcome, untilMs: 1000 });
    cache.get("ada's", 0);
  }
  expect(cache.get("ada's", 0)?.outcome).toEqual(outcome);
});

test("OutcomeCache evicts no token when a cached token is set again", () => {
  const cache = new OutcomeCache();
  for (let n = 0; n < 20_000; n += 1) cache.set(String(n), { outcome: valid, untilMs: 1000 });
  for (let again = 0; again < 2; again += 1) cache.set("19999", { outcome: valid, untilMs: 1000 });
  expect(cache.get("0", 0)?.outcome).toEqual(valid);
});

test("OutcomeCache returns a rejection instead of the valid outcome 10,000 tokens earlier", () => {
  const cache = new OutcomeCache();
  cache.set("ada's", { outcome: valid, untilMs: 1000 });
  for (let n = 0; n < 10_000; n += 1) cache.set(String(n), { outcome: valid, untilMs: 1000 });
  cache.set("ada's", { outcome: rejected, untilMs: 1000 });
  expect(cache.get("ada's", 0)?.outcome).toEqual(rejected);
});

test("OutcomeCache keeps a valid token while 50,000 rejected tokens are added", () => {
  const cache = new OutcomeCache();
  cache.set("ada's", { outcome: valid, untilMs: 1000 });
  for (let n = 0; n < 50_000; n += 1) cache.set(String(n), { outcome: rejected, untilMs: 1000 });
  expect(cache.get("ada's", 0)?.outcome).toEqual(valid);
});

test("verifyOnce runs one verification for concurrent callers with the same digest", async () => {
  const cache = new OutcomeCache();
  let calls = 0;
  const verify = async (): Promise<TokenOutcome> => {
    calls += 1;
    return await Promise.resolve(valid);
  };
  const outcomes = await Promise.all(["digest", "digest", "other"].map((digest) => cache.verifyOnce(digest, verify)));
  expect({ calls, outcomes }).toEqual({ calls: 2, outcomes: [valid, valid, valid] });
  await cache.verifyOnce("digest", verify);
  expect(calls).toBe(3);
});

test("verifyOnce verifies again after a failure", async () => {
  const cache = new OutcomeCache();
  await expect(cache.verifyOnce("digest", () => Promise.reject(new Error("fault")))).rejects.toThrow("fault");
  expect(await cache.verifyOnce("digest", () => Promise.resolve(valid))).toEqual(valid);
});
