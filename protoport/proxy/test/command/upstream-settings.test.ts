import { afterAll, expect, test } from "vitest";
import { requestFrom } from "../../../testing/src/gateway/proxy.ts";
import { createCertificate, createTempFolder } from "../../../testing/src/index.ts";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { compileForwardRules, noAddedFields } from "../../src/forward/forward-rules.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";
import { settingRows } from "../../src/settings/setting-flags.ts";

test.each([
  { name: "no rules", rules: "" },
  { name: "a rename rule", rules: ", requestHeader: { rename: { x-a: x-b } }" },
  { name: "a deny rule", rules: ", requestHeader: { deny: [x-a] }" },
  { name: "an allow rule", rules: ', requestHeader: { allow: ["*", authorization] }' },
])("with $name, authentication.forward: false withholds Authorization", async ({ rules }) => {
  const upstream = `{ addresses: ["http://127.0.0.1:1"], descriptors: reflection${rules} }`;
  const text = `upstreams: [${upstream}]\nauthentication: { forward: false }`;
  const { upstreams } = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }));
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
  const text = `upstreams: [{ ${[...required, setting].join(", ")} }]\n${others}`;
  const { upstreams } = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }));
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
