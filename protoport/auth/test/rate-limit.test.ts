import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { requestFrom } from "../../testing/src/gateway/proxy.ts";
import { createRateLimit, limitRates } from "../src/rate-limit.ts";
import { principalKey } from "../src/token-verifier.ts";

/** Creates a limit of ten calls per second with a clock that the test advances. */
function openLimit(): { readonly clock: { nowMs: number }; takeCalls: (key: string, calls: number) => number } {
  const clock = { nowMs: 1_000_000 };
  const limit = createRateLimit({ name: "test", callsPerSecond: 10, nowMs: () => clock.nowMs });
  const isAdmitted = (key: string): boolean => {
    try {
      limit.take(key);
      return true;
    } catch (reason) {
      if (reason instanceof ConnectError && reason.code === Code.ResourceExhausted) return false;
      throw reason;
    }
  };
  return { clock, takeCalls: (key, n) => Array.from({ length: n }, () => isAdmitted(key)).filter(Boolean).length };
}

test.each([Number.NaN, 0, -1])("a rate of %s is refused", (perAddress) =>
  expect(() => limitRates(() => undefined, { perAddress })).toThrow(RangeError),
);

test("a rate limit admits a burst of one second's calls", () => expect(openLimit().takeCalls("a", 30)).toBe(10));

test.each([
  { waitMs: 99, calls: 0 },
  { waitMs: 100, calls: 1 },
  { waitMs: 550, calls: 5 },
  { waitMs: 1000, calls: 10 },
  { waitMs: 3_600_000, calls: 10 },
])("$calls calls are admitted $waitMs ms after the bucket was empty", ({ waitMs, calls }) => {
  const { clock, takeCalls } = openLimit();
  takeCalls("a", 10);
  clock.nowMs += waitMs;
  expect(takeCalls("a", 30)).toBe(calls);
});

test("a caller at exactly the rate limit is never refused", () => {
  const { clock, takeCalls } = openLimit();
  takeCalls("a", 9);
  const hourly = Array.from({ length: 36_000 }, () => {
    clock.nowMs += 100;
    return takeCalls("a", 1);
  });
  expect(hourly).not.toContain(0);
});

test("refused calls do not delay the next admitted call", () => {
  const { clock, takeCalls } = openLimit();
  takeCalls("a", 1000);
  clock.nowMs += 100;
  expect(takeCalls("a", 10)).toBe(1);
});

test("a clock that is set back admits no additional calls", () => {
  const { clock, takeCalls } = openLimit();
  takeCalls("a", 10);
  clock.nowMs -= 60_000;
  expect(takeCalls("a", 10)).toBe(0);
});

test("each key has a separate bucket", () => {
  const { takeCalls } = openLimit();
  expect([takeCalls("a", 11), takeCalls("b", 11)]).toEqual([10, 10]);
});

test("a refused call does not delay its key's eviction", () => {
  const { takeCalls } = openLimit();
  takeCalls("first", 10);
  takeCalls("second", 10);
  for (let key = 0; key < 99_998; key++) takeCalls(`key ${key}`, 1);
  expect(takeCalls("first", 1)).toBe(0);
  takeCalls("second", 1);
  // "first" is evicted, because a refused call does not count as a use.
  takeCalls("one more", 1);
  expect([takeCalls("second", 1), takeCalls("first", 1)]).toEqual([0, 1]);
});

test("above the key limit, the least recently admitted key is evicted", () => {
  const { takeCalls } = openLimit();
  takeCalls("first", 9);
  takeCalls("second", 10);
  for (let key = 0; key < 99_998; key++) takeCalls(`key ${key}`, 1);
  takeCalls("first", 1);
  takeCalls("one more", 1);
  expect([takeCalls("first", 1), takeCalls("second", 1)]).toEqual([0, 1]);
});

test("a key that is used again between two evictions is kept", () => {
  const { takeCalls } = openLimit();
  for (let key = 0; key <= 100_000; key++) takeCalls(`key ${key}`, 1);
  takeCalls("key 5", 9);
  for (let key = 0; key < 10; key++) takeCalls(`new key ${key}`, 1);
  expect([takeCalls("key 5", 1), takeCalls("key 6", 10)]).toEqual([0, 10]);
});

test("a rate limit iterates over its keys once for many evictions", () => {
  const { takeCalls } = openLimit();
  for (let key = 0; key < 100_000; key++) takeCalls(`key ${key}`, 1);
  // Each new iterator first skips all deleted entries of the map.
  using keys = vi.spyOn(Map.prototype, "keys");
  using entries = vi.spyOn(Map.prototype, Symbol.iterator);
  for (let key = 0; key < 2_000; key++) takeCalls(`new key ${key}`, 1);
  expect(keys.mock.calls.length + entries.mock.calls.length).toBe(2);
});

test.each([
  { callsPerSecond: 1, calls: 1, policy: "q=1;w=1", waitS: 1 },
  { callsPerSecond: 2.5, calls: 2, policy: "q=2;w=1", waitS: 1 },
  { callsPerSecond: 0.1, calls: 1, policy: "q=1;w=10", waitS: 10 },
])("a call above the limit of $callsPerSecond per second gets Retry-After and RateLimit fields", (row) => {
  const { callsPerSecond, calls, policy, waitS } = row;
  const slow = createRateLimit({ name: "address", callsPerSecond, nowMs: () => 0 });
  for (let call = 0; call < calls; call++) slow.take("a");
  const rawMessage = `too many calls: the address limit is ${callsPerSecond} per second`;
  const ratelimit = `"address";r=0;t=${waitS}`;
  const header = { "retry-after": String(waitS), "ratelimit-policy": `"address";${policy}`, ratelimit };
  const error = { rawMessage, code: Code.ResourceExhausted, errorCode: "ERR_RATE_LIMITED" };
  expect(() => slow.take("a")).toThrow(expect.objectContaining({ ...error, metadata: new Headers(header) }));
});

test.each([
  { rates: { perPrincipal: 0.1 }, from: "another issuer", issuer: "https://b.example", isAdmitted: true },
  { rates: { perPrincipal: 0.1 }, from: "the same issuer", isAdmitted: false },
  { rates: { perAddress: 0.1 }, from: "another issuer", issuer: "https://b.example", isAdmitted: false },
  { rates: { perAddress: 0.1 }, from: "a health check", procedure: "/grpc.health.v1.Health/Check", isAdmitted: true },
])("with $rates, a second call by the same subject from $from is admitted: $isAdmitted", (row) => {
  const { rates, issuer = "https://a.example", procedure = "/a.A/Get", isAdmitted } = row;
  const admit = limitRates(() => undefined, rates);
  const call = (iss: string, rpc: string) => (): unknown => {
    const principal = { kind: "principal", subject: "ada", issuer: iss, scopes: "all" } as const;
    const contextValues = createContextValues().set(principalKey, principal);
    return admit(Object.assign(requestFrom("192.0.2.9"), { procedure: rpc, contextValues }));
  };
  call("https://a.example", "/a.A/Get")();
  if (isAdmitted) expect(call(issuer, procedure)).not.toThrow();
  else expect(call(issuer, procedure)).toThrow("too many calls");
});

test("a principal that an asynchronous check identifies is limited too", async () => {
  const check = vi.fn(() => undefined);
  const admit = limitRates(
    async ({ contextValues }) => {
      await Promise.resolve();
      contextValues.set(principalKey, { kind: "principal", subject: "ada", issuer: undefined, scopes: "all" });
      return check;
    },
    { perPrincipal: 0.1 },
  );
  const call = async (): Promise<unknown> =>
    await admit(
      Object.assign(requestFrom("192.0.2.9"), { procedure: "/a.A/Get", contextValues: createContextValues() }),
    );
  await expect(call()).resolves.toBe(check);
  await expect(call()).rejects.toThrow("too many calls: the principal limit");
});
