import { expect, test } from "vitest";
import { requestFrom } from "../../../testing/src/gateway/proxy.ts";
import { controlFields } from "../../src/forward/control-fields.ts";
import { identityFields } from "../../src/forward/identity-fields.ts";
// oxfmt-ignore
import { type ForwardRules, compileForwardRules, noAddedFields, requireEffect
} from "../../src/forward/forward-rules.ts";
import { LazyHeaders, type ProtocolName } from "../../../gateway/src/protocols/index.ts";
import type { Caller } from "../../../gateway/src/serve/index.ts";
import { forwardHeader, ResponseMetadata } from "../../src/forward/forward-call.ts";

const usual = ["X-A", "1", "X-B", "2", "Y-A", "3"];

test.each<[name: string, rules: ForwardRules, sent: readonly string[], forwarded: readonly string[]]>(
  // oxfmt-ignore
  [
    ["Connection lists fields in any case and with spaces", {},
      ["Connection", "Keep-Alive, X-HOP , x-b", "X-Hop", "1", "x-b", "2", "x-c", "keep-alive"], ["x-c", "keep-alive"]],
    ["rename has a field that Connection lists", { rename: { "x-a": "x-z" } }, ["Connection", "X-A", "x-a", "1"], []],
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
    ["an old name is received with underscores", { rename: { "x-auth": "x-a", y_auth: "y-a" } },
      ["x_auth", "1", "y-auth", "2", "x-auth", "3", "y_auth", "4", "z_auth", "5"],
      ["x-a", "3", "y-a", "4", "z_auth", "5"]],
    ["deny has names with underscores", { deny: ["x_auth", "x_a-b", "y_*", /^z_a$/] },
      ["x-auth", "1", "X_Auth", "2", "x-a_b", "3", "y-a", "4", "z-a", "5", "x-user-role", "6", "z-b", "7"],
      ["z-b", "7"]],
    ["a new name has an underscore", { rename: { "x-a": "x_auth", "x-for": "x_forwarded_for" } },
      ["x-auth", "forged", "x_auth", "forged", "x-a", "1", "x-for", "forged"], ["x_auth", "1"]],
    ["allow has one name with underscores", { allow: ["*", "x_real_ip"] },
      ["x_real_ip", "1", "x-real-ip", "2", "remote_user", "3", "x_forwarded_for", "4"], ["x_real_ip", "1"]],
    ["binary fields have several values", {}, ["x-a-bin", "AA, AAA=,AAAA", "x-b-bin", ""],
      ["x-a-bin", "AA, AAA=,AAAA", "x-b-bin", ""]],
    ["allow has a name", { allow: ["X-a"] }, usual, ["x-a", "1"]],
    ["allow has a prefix", { allow: ["x-*"] }, usual, ["x-a", "1", "x-b", "2"]],
    ["allow and deny have RegExps in another case", { allow: [/^X-/], deny: [/B$/gi] }, usual, ["x-a", "1"]],
    ["deny has a prefix", { deny: ["X-*"] }, usual, ["y-a", "3"]],
    ["rename changes an allowed name", { allow: ["x-a"], rename: { "X-A": "Z-A" } }, usual, ["z-a", "1"]],
    ["a forged new name is repeated", { rename: { authorization: "X-Auth" } },
      ["X-Auth", "forged", "Authorization", "a", "x-auth", "forged"], ["x-auth", "a"]],
    ["a forged new name has no original field", { allow: ["*", "x-auth"], rename: { authorization: "x-auth" } },
      ["X-Auth", "forged"], []],
    ["the original field of a new name is denied", { deny: ["authorization"], rename: { authorization: "x-auth" } },
      ["X-Auth", "forged", "Authorization", "a"], []],
  ],
)("when %s, request fields are selected", (_name, rules, sent, forwarded) => {
  const { select } = compileForwardRules("request", rules);
  expect(select([...sent], noAddedFields).fields).toEqual(forwarded);
  // The second time, the names are cached.
  expect(select([...sent], noAddedFields).fields).toEqual(forwarded);
});

// oxfmt-ignore
const blocked = {
  request: [
    "Accept", "Accept-Encoding", "Access-Control-Request-Method", "Connection", "Connect-Protocol-Version",
    "Content-Language", "Cookie", "Grpc-Accept-Encoding", "Grpc-Metadata-User", "Grpc-Status", "Keep-Alive",
    "Max-Forwards", "Proxy-Authorization", "Sec-Fetch-Mode", "TE", "Trailer", "Upgrade", "Via",
  ],
  response: ["Access-Control-Allow-Origin", "Alt-Svc", "Proxy-Status", "Server", "Set-Cookie", "Via"],
};

test.each(["request", "response"] as const)(
  "fields that a %s never forwards are not forwarded if allowed",
  (direction) => {
    const { select } = compileForwardRules(direction, { allow: ["*", /./, ...blocked[direction]] });
    const sent = [...blocked[direction], "x-a"].flatMap((name) => [name, "1"]);
    expect(select(sent, noAddedFields).fields).toEqual(["x-a", "1"]);
  },
);

/** One name for each name or prefix of the fields that need an exact name in `allow`. */
const exact = {
  request: identityFields.flatMap(({ names }) => names.map((name) => name.replace("*", "Something"))),
  response: controlFields.flatMap(({ names }) => names.map((name) => name.replace("*", "Something"))),
};

test.each(["request", "response"] as const)("fields that need an exact name in a %s need it in allow", (direction) => {
  const [first = "", ...others] = exact[direction];
  const selected = (allow: ForwardRules["allow"], spelling = (name: string) => name): readonly string[] => {
    const sent = exact[direction].flatMap((name) => [spelling(name), "1"]);
    const { fields: forwarded } = compileForwardRules(direction, allow && { allow }).select(sent, noAddedFields);
    return forwarded.filter((_, at) => at % 2 === 0);
  };
  expect([selected(undefined), selected(["*", "x-*", "cf-*", "content-*", /./])]).toEqual([[], []]);
  expect(selected(["*"], (name) => name.replaceAll("-", "_"))).toEqual([]);
  expect(selected(["*", first.toUpperCase()])).toEqual([first.toLowerCase()]);
  // The proxy sets the client's fields itself.
  expect(selected(others)).toEqual(others.map((name) => name.toLowerCase()));
});

test.each(["grpc-timeout", "te", "content-type", "connection", "not a name"])("rename and set refuse '%s'", (name) => {
  const problem = `rename and set must name a field that can be forwarded, got "${name}"`;
  for (const direction of ["request", "response"] as const) {
    expect(() => compileForwardRules(direction, { rename: { "x-a": name } })).toThrow(problem);
    const { added } = compileForwardRules(direction, { set: () => ({ [name]: "1" }) });
    expect(() => added(requestFrom("192.0.2.9"))).toThrow(problem);
  }
});

test.each<[result: unknown, problem: string]>([
  [Promise.resolve({ "x-a": "1" }), "requestHeader.set must be synchronous, got a promise"],
  [{ "x-a": "1\n2" }, 'the value of header "x-a"'],
])("a set function that returns %j is refused", (result, problem) => {
  const rules: object = { set: () => result };
  const { added } = compileForwardRules("request", rules);
  expect(() => added(requestFrom("192.0.2.9"))).toThrow(problem);
});

test("clients without an address or a host cannot forge client fields", () => {
  const rules: ForwardRules = { allow: ["*", "X-Forwarded-For", "X-A"], rename: { "x-a": "x-forwarded-host" } };
  for (const [more, forged] of [
    [rules, ["X-Forwarded-For", "X-Forwarded-Host", "X-A"]],
    [{ rename: { "x-forwarded-for": "z-for", "x-a": "z-for" } }, ["Z-For", "X-A", "X-Forwarded-For"]],
  ] as const) {
    const { added, select } = compileForwardRules("request", more);
    const sent = forged.flatMap((name) => [name, "forged"]);
    const request = Object.assign(requestFrom(""), { origin: "http://" });
    expect(select([...sent, "x-b", "1"], added(request)).fields).toEqual(["x-b", "1"]);
  }
});

const base64 = ["AA", "AA==", "AAA", "AAA=", "AAAA", "", "AA, AAA=,AAAA", "+/+/"];

test.each(base64)("the valid base64 value %j of a -bin field is forwarded unchanged", (value) => {
  const { select } = compileForwardRules("request");
  expect(select(["x-b-bin", value], noAddedFields).fields).toEqual(["x-b-bin", value]);
});

test.each(["A", "A===", "AA=", "AA A", "AA,*", "-_-_", "=", "AAAAA"])("a -bin field with %j is refused", (value) => {
  const { select } = compileForwardRules("request");
  expect(() => select(["x-b-bin", value], noAddedFields)).toThrow("the header field x-b-bin is not valid base64");
});

test.each<{ name: string; rules: ForwardRules; sent: readonly string[] }>([
  { name: "is not base64", rules: {}, sent: ["x-a-bin", "AAAA,A"] },
  { name: "gets a binary name", rules: { rename: { "x-a": "x-a-bin" } }, sent: ["x-a", "%"] },
])("a request field that $name is refused", ({ rules, sent }) => {
  const { select } = compileForwardRules("request", rules);
  expect(() => select(sent, noAddedFields)).toThrow(`the header field ${sent[0]} is not valid base64`);
});

test("responses forward any -bin value, but no field with a new name", () => {
  const { select } = compileForwardRules("response", { rename: { "x-a": "x-b" } });
  const sent = ["x-a-bin", "%", "x-b", "forged", "date", "now"];
  expect(select(sent, noAddedFields).fields).toEqual(["x-a-bin", "%"]);
  expect(select(["x-a", "1", ...sent], noAddedFields).fields).toEqual(["x-b", "1", "x-a-bin", "%"]);
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
  const forged = sent.flatMap((name) => [name, "forged"]);
  const { fields } = select(forged, added(requestFrom("192.0.2.9")));
  expect(fields.filter((_, at) => at % 2 === 0).toSorted()).toEqual(forwarded);
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
  const hostOf = (origin: string) => added(Object.assign(requestFrom("192.0.2.9"), { origin })).get("x-forwarded-host");
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
  expect([1, 2].map(() => rules.select(header, rules.added(requestFrom("192.0.2.9"))).fields)).toEqual([
    ["x-a", "1", "x-call", "1"],
    ["x-a", "1", "x-call", "2"],
  ]);
});

type CallHeaders = { requestHeader: Headers; responseHeader: Headers; responseTrailer: Headers };

function createCaller(protocol: ProtocolName, requestHeader: Headers): { caller: Caller; begun: string[] } {
  const begun: string[] = [];
  const headers: CallHeaders = { requestHeader, responseHeader: new Headers(), responseTrailer: new Headers() };
  const request = Object.assign(requestFrom("192.0.2.9"), { protocol });
  const begin = (): void => void begun.push(...[...headers.responseHeader].flat());
  return { caller: Object.assign(Object.create(null), { request, headers, begin }), begun };
}

test.each<[rules: ForwardRules, protocol: ProtocolName, forwarded: readonly string[]]>([
  [{}, "rest", ["authorization", "Bearer a", "x-a", "authorization"]],
  [{}, "grpc", ["authorization", "Bearer a", "x-a", "authorization"]],
  [{}, "mcp", ["x-a", "authorization"]],
  [{ rename: { authorization: "x-b" } }, "mcp", ["x-a", "authorization"]],
  [{ allow: ["*", "Authorization"] }, "mcp", ["authorization", "Bearer a", "x-a", "authorization"]],
])("with the rules $0, a $1 call forwards $2 only", (rules, protocol, forwarded) => {
  const fields = compileForwardRules("request", { deny: ["x-forwarded-*"], ...rules });
  const sent = ["Authorization", "Bearer a", "X-A", "authorization"];
  for (const header of [new LazyHeaders(sent), new Headers({ Authorization: "Bearer a", "X-A": "authorization" })])
    expect(forwardHeader(createCaller(protocol, header).caller, fields).fields).toEqual(forwarded);
});

test("responseHeader.set adds its fields to the header before the response begins", () => {
  const { caller, begun } = createCaller("rest", new Headers());
  const rules = { deny: ["x-b"], set: () => ({ "x-set": "1" }) };
  const metadata = new ResponseMetadata(caller, compileForwardRules("response", rules));
  metadata.header(["x-a", "2", "x-b", "3", "x-a", "4"]);
  metadata.trailer(["x-set", "5", "x-b", "6", "x-c", "7"]);
  expect(begun).toEqual(["x-a", "2, 4", "x-set", "1"]);
  expect([...caller.headers.responseTrailer].flat()).toEqual(["x-c", "7", "x-set", "5"]);
});
