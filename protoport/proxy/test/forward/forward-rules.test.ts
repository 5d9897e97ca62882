import { expect, test } from "vitest";
import { requestFrom } from "../../../testing/src/gateway/proxy.ts";
import {
  compileForwardRules,
  type ForwardRules,
  noAddedFields,
  requireEffect,
} from "../../src/forward/forward-rules.ts";

test.each<[name: string, rules: ForwardRules, sent: readonly string[], forwarded: readonly string[]]>(
  // oxfmt-ignore
  [
    ["Connection lists fields in any case and with spaces", {},
      ["Connection", "Keep-Alive, X-HOP , x-b", "X-Hop", "1", "x-b", "2", "x-c", "keep-alive"], ["x-c", "keep-alive"]],
    ["allow is a sticky RegExp", { allow: [/^X-A/gy] }, ["x-a", "1", "x-ab", "2", "x-ac", "3", "b", "4"],
      ["x-a", "1", "x-ab", "2", "x-ac", "3"]],
    ["deny excludes allowed fields", { allow: ["X-*"], deny: ["X-B*"] }, ["x-a", "1", "X-B", "2", "x-bc", "3"],
      ["x-a", "1"]],
    ["rename swaps two fields", { rename: { "X-A": "X-B", "x-b": "x-a" } }, ["x-a", "1", "x-b", "2"],
      ["x-b", "1", "x-a", "2"]],
    ["a received field has a new name", { rename: { "x-a": "x-b" } }, ["x-b", "forged", "x-a", "1"], ["x-b", "1"]],
    ["allow has a wildcard for fields that identify callers", { allow: ["*", "X-Real-IP"] },
      ["x-real-ip", "1", "x-client-ip", "2", "X-Envoy-Peer", "3"], ["x-real-ip", "1"]],
    ["names with underscores are similar to renamed, denied and blocked ones",
      { rename: { authorization: "x-auth" }, deny: ["x-secret", "y-*"] },
      ["x_auth", "forged", "authorization", "a", "x_secret", "1", "y_a", "2", "proxy_authorization", "3", "z_a", "4"],
      ["x-auth", "a", "z_a", "4"]],
    ["deny has names with underscores", { deny: ["x_auth", "x_a-b", "y_*", /^z_a$/] },
      ["x-auth", "1", "X_Auth", "2", "x-a_b", "3", "y-a", "4", "z-a", "5", "x-user-role", "6", "z-b", "7"],
      ["z-b", "7"]],
    ["a new name has an underscore", { rename: { "x-a": "x_auth", "x-for": "x_forwarded_for" } },
      ["x-auth", "forged", "x_auth", "forged", "x-a", "1", "x-for", "forged"], ["x_auth", "1"]],
    ["allow has one name with underscores", { allow: ["*", "x_real_ip"] },
      ["x_real_ip", "1", "x-real-ip", "2", "remote_user", "3", "x_forwarded_for", "4"], ["x_real_ip", "1"]],
    ["binary fields have several values", {}, ["x-a-bin", "AA, AAA=,AAAA", "x-b-bin", ""],
      ["x-a-bin", "AA, AAA=,AAAA", "x-b-bin", ""]],
  ],
)("when %s, request fields are selected", (_name, rules, sent, forwarded) => {
  const { select } = compileForwardRules("request", rules);
  expect(select([...sent], noAddedFields).fields).toEqual(forwarded);
  // The second time, the names are cached.
  expect(select([...sent], noAddedFields).fields).toEqual(forwarded);
});

test.each<{ name: string; rules: ForwardRules; sent: readonly string[] }>([
  { name: "is not base64", rules: {}, sent: ["x-a-bin", "AAAA,A"] },
  { name: "gets a binary name", rules: { rename: { "x-a": "x-a-bin" } }, sent: ["x-a", "%"] },
])("a request field that $name is refused", ({ rules, sent }) => {
  const { select } = compileForwardRules("request", rules);
  expect(() => select(sent, noAddedFields)).toThrow(`the header field ${sent[0]} is not valid base64`);
});

test("responses forward any -bin value, and control fields by exact name", () => {
  const sent = ["x-a-bin", "%", "location", "/", "refresh", "1", "date", "now"];
  const select = (rules: ForwardRules): unknown =>
    compileForwardRules("response", rules).select([...sent], noAddedFields).fields;
  expect(select({})).toEqual(["x-a-bin", "%"]);
  expect(select({ allow: ["*", "Location"] })).toEqual(["x-a-bin", "%", "location", "/"]);
});

test("one field list is selected separately for each set of rules", () => {
  const sent = ["x-a", "1", "User-Agent", "b"];
  const selected = [{}, { deny: ["user-agent"] }, {}].map((rules) =>
    compileForwardRules("request", rules).select(sent, noAddedFields),
  );
  expect(selected.map(({ fields, hasUserAgent }) => [fields, hasUserAgent])).toEqual([
    [["x-a", "1", "user-agent", "b"], true],
    [["x-a", "1"], false],
    [["x-a", "1", "user-agent", "b"], true],
  ]);
});

test.each<{ rules: ForwardRules; added: Readonly<Record<string, string | undefined>> }>([
  { rules: {}, added: { "x-forwarded-for": "192.0.2.9", "x-forwarded-host": "proxy.example" } },
  { rules: { deny: ["x-forwarded-host"] }, added: { "x-forwarded-for": "192.0.2.9" } },
  { rules: { deny: ["X-Forwarded-For"] }, added: { "x-forwarded-host": "proxy.example" } },
  { rules: { allow: ["x-a"] }, added: {} },
  {
    rules: { allow: ["x-forwarded-*"], rename: { "x-forwarded-for": "x-real-ip" } },
    added: { "x-real-ip": "192.0.2.9", "x-forwarded-host": "proxy.example" },
  },
  {
    rules: { set: () => ({ "X-Forwarded-For": undefined, "X-Forwarded-Host": "b", "X-A": "1" }) },
    added: { "x-forwarded-for": undefined, "x-forwarded-host": "b", "x-a": "1" },
  },
])("the rules $rules lead to $added as added fields", ({ rules, added }) => {
  const { added: addedTo, select } = compileForwardRules("request", rules);
  const fields = addedTo(requestFrom("192.0.2.9"));
  expect(Object.fromEntries(fields)).toEqual(added);
  const sent = Object.keys(added).flatMap((name) => [name, "forged"]);
  const kept = Object.entries(added).filter(([, value]) => value !== undefined);
  expect(select(sent, fields).fields).toEqual(kept.flat());
});

test.each([
  [{ "x-auth": "1", X_User: "2" }, ["x_auth", "X-User", "x-auth", "x_user"], ["x-auth", "x_user"]],
  [{ x_auth: "1", "x-auth": "2" }, ["X_Auth", "X-Auth"], ["x-auth", "x_auth"]],
  [{ x_a: undefined }, ["x-a", "x_a", "x_b"], ["x_b"]],
])("the fields $0 replace those of a caller with hyphens or underscores", (set, sent, forwarded) => {
  const { added, select } = compileForwardRules("request", { deny: ["x-forwarded-*"], set: () => set });
  const { fields } = select(
    sent.flatMap((name) => [name, "forged"]),
    added(requestFrom("192.0.2.9")),
  );
  const names = fields.filter((_, at) => at % 2 === 0);
  expect(names.toSorted()).toEqual(forwarded);
  expect(fields.includes("forged")).toBe(forwarded.includes("x_b"));
});

const neverForwarded = "must match a field that can be forwarded";
const needsName = "has no effect unless allow contains the exact name";

test.each<[rules: ForwardRules, direction: "request" | "response", problem: string]>([
  [{ allow: ["*", "Cookie"] }, "request", `allow[1] ${neverForwarded}, got "Cookie"`],
  [{ rename: { cookie: "x-c" } }, "request", `rename.cookie ${neverForwarded}, got "cookie"`],
  [{ allow: ["sec-*"] }, "request", `allow[0] ${neverForwarded}, got "sec-*"`],
  [{ allow: ["grpc-timeout"] }, "request", `allow[0] ${neverForwarded}, got "grpc-timeout"`],
  [{ allow: ["content_type"] }, "request", `allow[0] ${neverForwarded}, got "content_type"`],
  [{ allow: ["x-envoy-*"] }, "request", `allow[0] ${needsName}, got "x-envoy-*"`],
  [{ allow: ["*"], rename: { "X-User": "x-u" } }, "request", `rename.X-User ${needsName}, got "X-User"`],
  [{ allow: ["Set-Cookie"] }, "response", `allow[0] ${neverForwarded}, got "Set-Cookie"`],
  [{ rename: { link: "x-l" } }, "response", `rename.link ${needsName}, got "link"`],
])("$0 for a $1 is refused, because a rule has no effect", (rules, direction, problem) => {
  expect(() => requireEffect(direction, rules, "rules")).toThrow(`rules.${problem}`);
});

test.each<[rules: ForwardRules, direction: "request" | "response"]>([
  [{ allow: ["*", "authorization", "x-user", "grpc-*", "x-forwarded-*", "cookie*", /^sec-/] }, "request"],
  [{ allow: ["X-User"], rename: { "x-user": "x-u", "x-forwarded-for": "x-f" } }, "request"],
  [{ deny: ["cookie"], rename: { authorization: "cookie" } }, "request"],
  [{ allow: ["Link"], rename: { link: "x-l", cookie: "x-c" } }, "response"],
])("$0 for a $1 is accepted, because each rule has an effect", (rules, direction) => {
  expect(() => requireEffect(direction, rules, "rules")).not.toThrow();
});

test.each([
  { allow: ["Authorization"], forwards: true },
  { allow: ["*", "authorization*"], forwards: false },
  { allow: [/^authorization$/], forwards: false },
])("forwardsMcpCredential is $forwards if allow has $allow only", ({ allow, forwards }) => {
  expect(compileForwardRules("request", { allow }).forwardsMcpCredential).toBe(forwards);
});

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
