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
