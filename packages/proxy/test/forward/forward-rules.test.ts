import { expect, test } from "vitest";
import { requestFrom } from "../../../testing/src/gateway/proxy.ts";
import { compileForwardRules } from "../../src/forward/forward-rules.ts";

test("rename cannot set X-Forwarded-Host for a call without a host", () => {
  const rules = compileForwardRules("request", { rename: { "x-a": "x-forwarded-host" } });
  const added = rules.added(Object.assign(requestFrom("192.0.2.9"), { origin: "http://" }));
  expect(rules.select(["X-A", "forged.example"], added).fields).toEqual(["x-forwarded-for", "192.0.2.9"]);
});

test("X-Forwarded-Host is the host of each call from the same address", () => {
  const { added } = compileForwardRules("request");
  const hostOf = (origin: string): unknown =>
    added(Object.assign(requestFrom("192.0.2.9"), { origin })).get("x-forwarded-host");
  expect(["http://a.example", "https://[2001:db8::1]:8443", "http://a.example"].map(hostOf)).toEqual([
    "a.example",
    "[2001:db8::1]:8443",
    "a.example",
  ]);
});

test.each([
  { address: "", want: undefined },
  { address: "192.0.2.9", want: "192.0.2.9" },
  // An IPv4 address as a dual-stack socket reports it.
  { address: "::ffff:192.0.2.9", want: "192.0.2.9" },
  { address: "::ffff:1", want: "::ffff:1" },
  { address: "64:ff9b::192.0.2.9", want: "64:ff9b::192.0.2.9" },
])("X-Forwarded-For is $want for the peer address '$address'", ({ address, want }) => {
  expect(compileForwardRules("request").added(requestFrom(address)).get("x-forwarded-for")).toBe(want);
});

test.each([
  { name: "addresses", requestAt: (at: number) => requestFrom(`192.0.${at >> 8}.${at & 255}`) },
  { name: "hosts", requestAt: (at: number) => ({ ...requestFrom("192.0.2.9"), origin: `http://${at}.example` }) },
])("at most a thousand $name are cached", ({ requestAt }) => {
  const rules = compileForwardRules("request");
  const of = (at: number): unknown => rules.added(requestAt(at));
  const [first, ...others] = Array.from({ length: 1_000 }, (_, at) => of(at));
  expect(others.includes(first)).toBe(false);
  expect(of(0)).toBe(first);
  const [next] = [of(1_000), of(1_001)];
  expect(of(1_000)).toBe(next);
  expect(of(0)).not.toBe(first);
});

test("`set` runs for each call, even if the headers are equal", () => {
  let calls = 0;
  const set = (): Record<string, string> => ({ "x-call": String((calls += 1)) });
  const rules = compileForwardRules("request", { deny: ["x-forwarded-*"], set });
  const header = ["x-a", "1"];
  const forwarded = [1, 2].map(() => rules.select(header, rules.added(requestFrom("192.0.2.9"))).fields);
  expect(forwarded).toEqual([
    ["x-a", "1", "x-call", "1"],
    ["x-a", "1", "x-call", "2"],
  ]);
});
