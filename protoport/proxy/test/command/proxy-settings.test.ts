import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { expect, test, afterAll } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createAccessLog } from "../../src/command/access-log.ts";
import { type ProxySettings, toProxySettings } from "../../src/command/proxy-settings.ts";
import { createRequiredScopes } from "../../src/definitions/index.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";
import { readSettings } from "../../src/command/read-settings.ts";
import { requestFrom } from "../../../testing/src/gateway/proxy.ts";
import { createCertificate, createTempFolder } from "@protoport/testing";
import { compileForwardRules, noAddedFields } from "../../src/forward/forward-rules.ts";
import { settingRows } from "../../src/settings/setting-flags.ts";

function read(text: string): Promise<ProxySettings> {
  const upstreams = 'upstreams: [{ addresses: ["dns:a:1"], descriptors: reflection }]';
  return toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text: `${upstreams}\n${text}\n` }));
}

const codes = (count: number): string => `[${Array.from({ length: count }, () => "UNAVAILABLE").join()}]`;
const policy = (count: number): string =>
  `{ maxAttempts: 2, initialBackoff: 1s, maxBackoff: 2s, backoffMultiplier: 3, retryableStatusCodes: ${codes(count)} }`;

test.each(
  // oxfmt-ignore
  [
    { text: "methodConfig: [{ name: [{ method: Get }] }]",
      problem: 'proxy.yaml:2:35: methodConfig[0].name[0].method requires a service, got only "Get"' },
    { text: "methodConfig: [{ name: [{ service: a.B }] }, { name: [{}, { service: a.B }] }]",
      problem: "proxy.yaml:2:59: methodConfig[1].name[1] must be unique, but methodConfig[0].name[0] names the same RPCs" },
    { text: "methodConfig: [{ name: [{ service: a.B, method: C }, { method: C, service: a.B }] }]",
      problem: "2:54: methodConfig[0].name[1] must be unique, but methodConfig[0].name[0] names the same RPCs" },
    { text: "methodConfig: [{ name: [{}], timeout: 1s }, { name: [{}], timeout: 2s }]",
      problem: "2:54: methodConfig[1].name[0] must be unique, but methodConfig[0].name[0] names the same RPCs" },
    { text: `methodConfig: [{ name: [{}], retryPolicy: ${policy(17)} }]`,
      problem: "retryableStatusCodes must contain between 1 and 16 codes, got 17" },
    { text: `methodConfig: [{ name: [{}], retryPolicy: ${policy(0)} }]`,
      problem: "retryableStatusCodes must contain between 1 and 16 codes, got 0" },
    { upstream: 'addresses: ["unix:/a"], tls: { ca: a }', problem: "tls.ca requires an address with TLS, got" },
    { upstream: 'addresses: ["HTTP://a"], tls: { key: a }', problem: "tls.key requires an address with TLS, got" },
    { upstream: "tls: { cert: a }", problem: "tls.cert requires both a certificate and its key" },
    { upstream: "tls: { key: a }", problem: "tls.key requires both a certificate and its key" },
    { upstream: "descriptors: a, reflectionHeader: { x-a: b }",
      problem: "reflectionHeader requires descriptors: reflection" },
    { upstream: 'addresses: ["dns:a:1"], descriptors: reflection, services: [a.*] }, { addresses: ["dns:b:2"], descriptors: reflection',
      problem: 'proxy.yaml:1:83: upstreams[1].services is required because upstreams[0] uses reflection, too; add services: ["PACKAGE.*"]' },
    { upstream: 'addresses: ["dns:a:1"], descriptors: reflection, services: [a.*] }, { addresses: ["dns:b:2"], descriptors: reflection, services: [b.*, a.*]',
      problem: 'proxy.yaml:1:144: upstreams[1].services must not contain "a.*", which upstreams[0] has, too' },
    { upstream: "addresses: []", problem: "upstreams[0].addresses must contain at least one address" },
    { text: "validate: true", problem: "must be a file unless validateReflected is set" },
    { text: "openapi: { license: { name: MIT, identifier: MIT, url: https://a.example } }",
      problem: "openapi.license.url must not be combined with openapi.license.identifier; use one of them" },
    { text: "rateLimit: { perPrincipal: 1 }", problem: "2:28: rateLimit.perPrincipal requires authentication" },
    { text: "listen: { port: 90 }\nadmin: { port: 90 }",
      problem: "proxy.yaml:3:16: admin.port must differ from listen.port, got 90" },
    { text: "rest: { services: [{ name: a.B, options: [fullyDecodeReservedExpansion] }] }",
      problem: "2:43: rest.services[0].options[0] must be one of lenient," },
    { text: "listen: { tls: { cert: a } }", problem: "listen.tls.cert requires both a certificate and its key" },
    { text: "listen: { tls: { key: a } }", problem: "listen.tls.key requires both a certificate and its key" },
  ],
)("contradicting settings are refused with $problem as reason", async ({ text = "", upstream = "", problem }) => {
  const own = { addresses: '["dns:a:1"]', descriptors: "reflection" };
  const others = Object.entries(own).filter(([name]) => !upstream.includes(`${name}:`));
  const items = [...others.map(([name, value]) => `${name}: ${value}`), ...(upstream === "" ? [] : [upstream])];
  const file = { name: "proxy.yaml", text: `upstreams: [{ ${items.join(", ")} }]\n${text}\n` };
  await expect(async () => await toProxySettings(readProxyConfiguration(file))).rejects.toThrow(problem);
});

test.each<{ text: string; settings: Partial<Record<keyof ProxySettings, unknown>> }>([
  { text: "validate: true\nvalidateReflected: true", settings: { validates: "upstreams" } },
  {
    text: "listen: { port: 90 }\nadmin: { host: 127.0.0.2, port: 90 }",
    settings: { admin: { host: "127.0.0.2", port: 90 } },
  },
  { text: "", settings: { validates: "none", admin: undefined, cors: undefined, tools: undefined } },
  { text: "admin: { port: 0 }", settings: { admin: { host: "127.0.0.1", port: 0 } } },
  { text: 'listen: { host: "::" }\nadmin: { port: 1 }', settings: { admin: { host: "::", port: 1 } } },
  { text: "admin: { host: 127.0.0.2, port: 1 }", settings: { admin: { host: "127.0.0.2", port: 1 } } },
  { text: "admin: { host: 127.0.0.2 }", settings: { admin: undefined } },
  {
    text: 'cors: { origins: ["https://a.example", "*"], maxAgeSeconds: 0 }',
    settings: { cors: { origins: "*", allowedHeaders: [], exposedHeaders: [], maxAgeSeconds: 0 } },
  },
  {
    text: "methodConfig: [{ name: [{}, { service: a.B }, { service: a.B, method: Get }] }]",
    settings: { configuredMethods: ["a.B", "a.B.Get"] },
  },
  { text: "drain: { delayMs: 0 }", settings: { drain: { delayMs: 0, timeoutMs: 20_000 } } },
])("the settings `$text` become $settings in the command", async ({ text, settings }) => {
  expect(await read(text)).toMatchObject(settings);
});

test("the most specific item of methodConfig applies to an RPC", async () => {
  const text = `methodConfig:
- { name: [{}], timeout: 1s }
- { name: [{ service: greenhouse.v1.GreenhouseService }], timeout: 2s, retryPolicy: ${policy(1)} }
- { name: [{ service: greenhouse.v1.GreenhouseService, method: WaterBed }], timeout: 3s }`;
  const settingsOf = (await read(text)).upstreams[0]?.methodSettings;
  const { waterBed, getReading } = GreenhouseService.method;
  const other: DescMethod = Object.assign(Object.create(waterBed), { parent: { typeName: "a.B" } });
  expect(settingsOf?.(waterBed)).toEqual({ timeoutMs: 3_000, maxTimeoutMs: 3_000 });
  // oxfmt-ignore
  expect(settingsOf?.(getReading)).toEqual({ timeoutMs: 2_000, maxTimeoutMs: 2_000, retry: { maxAttempts: 2,
    initialBackoffMs: 1_000, maxBackoffMs: 2_000, backoffMultiplier: 3, retryableCodes: [Code.Unavailable] } });
  expect(settingsOf?.(other)).toEqual({ timeoutMs: 1_000, maxTimeoutMs: 1_000 });
});

test.each([
  { procedure: "/a.v1.A/Get", scopes: ["one", "two"] },
  { procedure: "/a.v1.A/GetAll", scopes: ["of-prefix"] },
  { procedure: "/a.v1.A/List", scopes: ["of-service"] },
  { procedure: "/a.v1.Other/Get", scopes: ["of-package"] },
  { procedure: "/a.v1.AB/Get", scopes: ["of-package"] },
  { procedure: "/b.B/Get", scopes: undefined },
])("$procedure requires $scopes by the most specific name", ({ procedure, scopes }) => {
  const rules = { "a.*": "of-package", "a.v1.A.*": "of-service", "a.v1.A.Get*": "of-prefix", "a.v1.A.Get": "one two" };
  expect(createRequiredScopes(rules)(procedure)).toEqual(scopes);
});

const failure = new ConnectError("secret", Code.NotFound);

test.each([
  { which: "off", error: failure, logged: undefined },
  { which: "errors", error: undefined, logged: [] },
  { which: "errors", error: failure, logged: ["NotFound"] },
  { which: "all", error: undefined, logged: ["OK"] },
  { which: "all", error: failure, logged: ["NotFound"] },
] as const)("when a call's error is $error, accessLog $which writes $logged codes", ({ which, error, logged }) => {
  const lines: string[] = [];
  const log = createAccessLog(which, (line) => void lines.push(line));
  const path = `/${"a".repeat(300)}`;
  const call = { path, httpStatus: 200, durationMs: 1.23456, peer: { address: "192.0.2.9" }, error };
  log?.(Object.assign(Object.create(null), { ...call, contextValues: createContextValues() }));
  const records: readonly Record<string, unknown>[] = lines.map((line) => JSON.parse(line));
  expect(log && records.map(({ code }) => code)).toEqual(logged);
  for (const record of records)
    expect(record).toMatchObject({ path: path.slice(0, 256), durationMs: 1.235, peer: "192.0.2.9" });
  expect(lines.join()).not.toContain("secret");
});

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const [text, empty] = [folder.write("text.pem", "no certificate"), folder.write("empty.pem", "")];
const [one, two] = [["http://a:1"], ["http://a:1", "http://b:1"]];
const sources = "exactly one of --reflection and --descriptors is required";

test.each<[flags: Parameters<typeof readSettings>[0], problem: string]>([
  [{ reflection: true }, "--upstream or --config is missing"],
  [{ upstream: one }, sources],
  [{ upstream: one, reflection: true, descriptors: "a" }, sources],
  [{ upstream: two, descriptors: "a" }, "--descriptors requires exactly one --upstream"],
  [{ upstream: two, reflection: true, service: ["http://a:1=a.*"] }, "upstreams[1].services is required"],
  [
    { upstream: one, reflection: true, service: ["http://b:1=a.*"] },
    '--service must have the address of an upstream before "=", got "http://b:1"',
  ],
  ...[text, empty].map((file): [Parameters<typeof readSettings>[0], string] => [
    { upstream: ["https://a"], reflection: true, "upstream-tls-ca": file },
    `${file} does not contain a PEM certificate or key`,
  ]),
])("the flags $0 are refused", (flags, problem) => expect(readSettings(flags)).rejects.toThrow(problem));

test("flags of the second of two upstreams are accepted", async () => {
  const service = ["http://a:1=a.*", "http://b:1=b.*"];
  const { upstreams } = await readSettings({ upstream: two, reflection: true, service });
  expect(upstreams.map(({ services }) => services)).toEqual([["a.*"], ["b.*"]]);
});

test.each([
  { name: "no rules", rules: "" },
  { name: "a rename rule", rules: ", requestHeader: { rename: { x-a: x-b } }" },
  { name: "a deny rule", rules: ", requestHeader: { deny: [x-a] }" },
  { name: "an allow rule", rules: ', requestHeader: { allow: ["*", authorization] }' },
])("with $name, authentication.forward: false withholds Authorization", async ({ rules }) => {
  const upstream = `{ addresses: ["http://127.0.0.1:1"], descriptors: reflection${rules} }`;
  const yaml = `upstreams: [${upstream}]\nauthentication: { forward: false }`;
  const { upstreams } = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text: yaml }));
  const { select } = compileForwardRules("request", upstreams[0]?.requestHeader);
  expect(select(["Authorization", "Bearer a", "X-C", "1"], noAddedFields).fields).toEqual(["x-c", "1"]);
});

const files = createTempFolder();
afterAll(() => files[Symbol.dispose]());
const { cert, key } = createCertificate("client");
const [certFile, keyFile] = [files.write("client.pem", cert), files.write("client.key", key)];

/** Returns the options of the first upstream, and the header fields that its rules set. */
async function optionsOf(setting: string, others = "") {
  const both = ["addresses: [dns:a:1]", "descriptors: reflection"];
  const required = both.filter((each) => !setting.startsWith(each.slice(0, 9)));
  const yaml = `upstreams: [{ ${[...required, setting].join(", ")} }]\n${others}`;
  const { upstreams } = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text: yaml }));
  const set = [upstreams[0]?.requestHeader, upstreams[0]?.responseHeader].map((rules) => rules?.set?.(requestFrom("")));
  return { ...upstreams[0], set };
}

/** Each value of an upstream's settings, which replaces a setting of {@link optionsOf}, and its option. */
const rows: readonly (readonly [path: string, setting: string, option: object])[] = [
  ["addresses", "addresses: [dns:b:1, dns:c:1]", { upstream: { addresses: ["dns:b:1", "dns:c:1"] } }],
  ["descriptors", "descriptors: /set.binpb", { descriptors: new URL("file:///set.binpb") }],
  ["connections", "connections: 7", { upstream: { connections: 7 } }],
  ["keepaliveMs", "keepaliveMs: 7", { upstream: { keepaliveMs: 7 } }],
  ["resolveEveryMs", "resolveEveryMs: 7", { upstream: { resolveEveryMs: 7 } }],
  ["healthService", 'healthService: ""', { upstream: { healthService: "" } }],
  ["maxConnectionAgeMs", "maxConnectionAgeMs: 7", { upstream: { maxConnectionAgeMs: 7 } }],
  ["tls", "tls: {}", { upstream: { tls: {} } }],
  ["tls.ca", `tls: { ca: ${certFile} }`, { upstream: { tls: { ca: cert } } }],
  ["tls.cert", `tls: { cert: ${certFile}, key: ${keyFile} }`, { upstream: { tls: { cert } } }],
  ["tls.key", `tls: { cert: ${certFile}, key: ${keyFile} }`, { upstream: { tls: { key } } }],
  ["tls.servername", "tls: { servername: b }", { upstream: { tls: { servername: "b" } } }],
  ["timeoutMs", "timeoutMs: 0", { timeoutMs: 0 }],
  ["timeoutMaxMs", "timeoutMaxMs: 7", { maxTimeoutMs: 7 }],
  ["retry", 'retry: "off"', { retry: "off" }],
  ["services", "services: [a.*]", { services: ["a.*"] }],
  ["reflectionHeader", "reflectionHeader: { x-a: b }", { reflectionHeader: { "x-a": "b" } }],
  ...["requestHeader", "responseHeader"].flatMap((rules, at): typeof rows => [
    [`${rules}.allow`, `${rules}: { allow: [a] }`, { [rules]: { allow: ["a"], deny: [], rename: {} } }],
    [`${rules}.deny`, `${rules}: { deny: [a] }`, { [rules]: { deny: ["a"], rename: {} } }],
    [`${rules}.rename`, `${rules}: { rename: { a: b } }`, { [rules]: { deny: [], rename: { a: "b" } } }],
    [
      `${rules}.set`,
      `${rules}: { set: { a: b } }`,
      { set: [0, 1].map((each) => (each === at ? { a: "b" } : undefined)) },
    ],
  ]),
];

test.for(rows)("the upstream's setting %s as `%s` becomes %j", async ([, setting, option]) => {
  expect(await optionsOf(setting)).toMatchObject(option);
});

test.for([
  ["headerBytes: 5000", { upstream: { limits: { headerBytes: 5_000 } } }],
  ["responseBytes: 5000", { readMaxBytes: 5_000 }],
] as const)("the setting `%s` becomes the option %j of each upstream", async ([others, option]) => {
  expect(await optionsOf("", others)).toMatchObject(option);
});

test("every setting of an upstream has a test case", () => {
  const paths = settingRows().filter(({ type, path }) => type !== "mapping" && path.startsWith("upstreams[]."));
  const tested = rows.map(([path]) => `upstreams[].${path}`);
  expect(paths.filter(({ path }) => !tested.includes(path))).toEqual([]);
});

test("upstream settings without a value leave the defaults to the upstream", async () => {
  const { upstream, methodSettings: _, set, ...options } = await optionsOf("");
  expect(upstream).toEqual({ addresses: ["dns:a:1"], limits: { headerBytes: 65_536 } });
  expect(set).toEqual([undefined, undefined]);
  const lists = { reflectionHeader: {}, requestHeader: { deny: [], rename: {} }, services: [] };
  const others = { descriptors: "reflection", retry: "transparent", readMaxBytes: 4_194_304 };
  expect(options).toEqual({ ...others, ...lists });
});
