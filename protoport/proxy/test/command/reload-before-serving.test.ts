import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf, ProxyCommand, respondWatered, startScriptedServer } from "@protoport/testing/proxy";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

test("a reload applies its tokens to a proxy that opens during the reload", async () => {
  await using server = await startScriptedServer(respondWatered);
  using folder = createTempFolder();
  const descriptors = folder.file("greenhouse.binpb");
  const [old, next] = ["the-revoked-token-2026", "the-current-token-2026"];
  const configure = (token: string): string => {
    const upstreams = [{ addresses: [server.baseUrl], descriptors }];
    const tokens = [{ file: folder.write(token, token) }];
    const settings = { listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 }, wait: true, upstreams };
    return folder.write("proxy.yaml", JSON.stringify({ ...settings, authentication: { tokens } }));
  };
  await using command = new ProxyCommand(["--config", configure(old)]);
  await command.waitForLine(/^waiting for descriptors/);
  configure(next);
  // The proxy finds the descriptors while it checks the new configuration.
  command.hangUp();
  folder.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));
  expect(await command.waitForLine(/^configuration reloaded$/)).toBeDefined();
  const statuses = [old, next].map(async (token) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${await command.serving}/beds/7:water`, { method: "POST", headers })).status;
  });
  expect(await Promise.all(statuses)).toEqual([401, 200]);
});
