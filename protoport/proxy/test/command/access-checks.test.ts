import { createContextValues } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { createSigningKey, createTempFolder, startIdentityProvider } from "@protoport/testing/process";
import { getReadingProcedure, requestFrom, waterBedProcedure } from "@protoport/testing/proxy";
import { openAccessChecks } from "../../src/command/access-checks.ts";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";

const output = { out: () => undefined, err: () => undefined };

/** Opens the checks of opaque tokens, which may call GetReading and have the scope "readings". */
async function openIntrospection() {
  const folder = createTempFolder();
  const provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  onTestFinished(() => {
    provider[Symbol.dispose]();
    folder[Symbol.dispose]();
  });
  provider.respond = (_, response) => void response.end('{"active":true,"sub":"ada","scope":"readings"}');
  const clientSecretFile = folder.write("secret", "secret");
  const introspection = { url: `${provider.issuer}/introspect`, clientId: "proxy", clientSecretFile };
  const scopes = { "greenhouse.v1.GreenhouseService.GetReading": "readings", "greenhouse.*": "water" };
  const text = JSON.stringify({
    upstreams: [{ addresses: ["http://127.0.0.1:1"], descriptors: "reflection" }],
    authentication: { introspection, scopes },
  });
  const settings = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }));
  const checks = await openAccessChecks(settings, output);
  onTestFinished(checks.close);
  const call = async (procedure: string, token = "opaque"): Promise<unknown> => {
    const request = { procedure, authorization: `Bearer ${token}`, contextValues: createContextValues() };
    return await checks.admit?.(Object.assign(requestFrom("192.0.2.9"), request));
  };
  return { ...checks, call };
}

test("an introspected token may call only RPCs whose scopes it has", async () => {
  const { call } = await openIntrospection();
  await call(getReadingProcedure);
  await expect(call(waterBedProcedure)).rejects.toThrow("water");
});

test.each([
  { name: "admitted", procedure: getReadingProcedure },
  { name: "refused", procedure: waterBedProcedure },
])("replaced access checks close once the last waiting request is $name", async ({ procedure }) => {
  const { call, closeWhenIdle } = await openIntrospection();
  const waiting = call(procedure).catch(String);
  closeWhenIdle();
  expect(String(await waiting)).not.toContain("cannot be verified");
  await expect(call(getReadingProcedure, "another")).rejects.toThrow("cannot be verified");
});
