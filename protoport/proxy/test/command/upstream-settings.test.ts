import { expect, test } from "vitest";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { compileForwardRules, noAddedFields } from "../../src/forward/forward-rules.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";

test.each([
  { name: "no rules", rules: "" },
  { name: "a rename rule", rules: ", requestHeader: { rename: { x-a: x-b } }" },
  { name: "a deny rule", rules: ", requestHeader: { deny: [x-a] }" },
  { name: "an allow rule", rules: ', requestHeader: { allow: ["*", authorization] }' },
])("with $name, authentication.forward: false withholds Authorization", async ({ rules }) => {
  const text = [
    `upstreams: [{ addresses: ["http://127.0.0.1:1"], descriptors: reflection${rules} }]`,
    "authentication: { forward: false }",
  ].join("\n");
  const { upstreams } = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }));
  const { select } = compileForwardRules("request", upstreams[0]?.requestHeader);
  expect(select(["Authorization", "Bearer a", "X-C", "1"], noAddedFields).fields).toEqual(["x-c", "1"]);
});

/** Returns the options of the first upstream. */
async function optionsOf(setting: string, others = "") {
  const text = `upstreams: [{ addresses: ["dns:a:1"], descriptors: reflection, ${setting} }]\n${others}`;
  const { upstreams } = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }));
  return upstreams[0];
}

test.each<{ setting: string; others?: string; option: object }>([
  { setting: "connections: 7", option: { upstream: { connections: 7 } } },
  { setting: "keepaliveMs: 7", option: { upstream: { keepaliveMs: 7 } } },
  { setting: "resolveEveryMs: 7", option: { upstream: { resolveEveryMs: 7 } } },
  { setting: 'healthService: ""', option: { upstream: { healthService: "" } } },
  { setting: "maxConnectionAgeMs: 7", option: { upstream: { maxConnectionAgeMs: 7 } } },
  { setting: "tls: {}", option: { upstream: { tls: {} } } },
  { setting: "tls: { servername: b }", option: { upstream: { tls: { servername: "b" } } } },
  { setting: "timeoutMs: 0", option: { timeoutMs: 0 } },
  { setting: "timeoutMaxMs: 7", option: { maxTimeoutMs: 7 } },
  { setting: 'retry: "off"', option: { retry: "off" } },
  { setting: "services: [a.*]", option: { services: ["a.*"] } },
  { setting: "reflectionHeader: { x-a: b }", option: { reflectionHeader: { "x-a": "b" } } },
  { setting: "responseHeader: { allow: [a] }", option: { responseHeader: { allow: ["a"], deny: [], rename: {} } } },
  { setting: "", others: "headerBytes: 5000", option: { upstream: { limits: { headerBytes: 5_000 } } } },
  { setting: "", others: "responseBytes: 5000", option: { readMaxBytes: 5_000 } },
])("the upstream's setting `$setting` $others becomes its option", async ({ setting, others, option }) => {
  expect(await optionsOf(setting, others)).toMatchObject(option);
});

test("upstream settings without a value leave the defaults to the upstream", async () => {
  const { upstream, methodSettings: _, ...options } = (await optionsOf("")) ?? {};
  expect(upstream).toEqual({ addresses: ["dns:a:1"], limits: { headerBytes: 65_536 } });
  expect(options).toEqual({
    descriptors: "reflection",
    reflectionHeader: {},
    retry: "transparent",
    readMaxBytes: 4_194_304,
    requestHeader: { deny: [], rename: {} },
    services: [],
  });
});
