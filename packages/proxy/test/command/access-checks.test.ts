import { createContextValues } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { createSigningKey, startIdentityProvider } from "../../../testing/src/auth/identity-provider.ts";
import { getReadingProcedure, waterBedProcedure } from "../../../testing/src/gateway/greenhouse.ts";
import { requestFrom } from "../../../testing/src/gateway/proxy.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { openAccessChecks } from "../../src/command/access-checks.ts";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";

const output = { out: () => undefined, err: () => undefined };

test("an introspected token may call only RPCs whose scopes it has", async () => {
  using folder = createTempFolder();
  using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  provider.respond = (_, response) => void response.end('{"active":true,"sub":"ada","scope":"readings"}');
  const introspection = {
    url: `${provider.issuer}/introspect`,
    clientId: "proxy",
    clientSecretFile: folder.write("secret", "secret"),
  };
  const scopes = { "greenhouse.v1.GreenhouseService.GetReading": "readings", "greenhouse.*": "water" };
  const text = JSON.stringify({
    upstreams: [{ addresses: ["http://127.0.0.1:1"], descriptors: "reflection" }],
    authentication: { introspection, scopes },
  });
  const settings = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }));
  const { admit, close } = await openAccessChecks(settings, output);
  onTestFinished(close);
  const call = async (procedure: string): Promise<unknown> => {
    const request = { procedure, authorization: "Bearer opaque", contextValues: createContextValues() };
    return await admit?.(Object.assign(requestFrom("192.0.2.9"), request));
  };
  await call(getReadingProcedure);
  await expect(call(waterBedProcedure)).rejects.toThrow("water");
});
