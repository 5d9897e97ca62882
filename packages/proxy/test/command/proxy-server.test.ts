import { expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { respondWatered } from "../../../testing/src/gateway/greenhouse-client.ts";
import { startScriptedServer } from "../../../testing/src/gateway/scripted-http2-server.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { proxyCommand } from "../../src/command/program.ts";

test("a reload with a refused configuration keeps the upstream connections open", async () => {
  await using server = await startScriptedServer(respondWatered);
  using folder = createTempFolder();
  const descriptors = folder.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));
  const configure = (services: string): string => {
    const upstreams = [{ addresses: [server.baseUrl], descriptors, services: [services] }];
    const others = { listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 } };
    return folder.write("proxy.yaml", JSON.stringify({ ...others, upstreams }));
  };
  const [serving, refused] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const stop = Promise.withResolvers<void>();
  onTestFinished(() => stop.resolve());
  let reload: (() => void) | undefined;
  const ended = proxyCommand(["--config", configure("greenhouse.*")], {
    out: serving.resolve,
    err: refused.resolve,
    stopRequested: () => stop.promise,
    onHangup: (onReload) => {
      reload = onReload;
    },
  });
  const [baseUrl = ""] = (await serving.promise).split(" ");
  const water = async (): Promise<number> => (await fetch(`${baseUrl}/beds/7:water`, { method: "POST" })).status;
  expect(await water()).toBe(200);
  configure("other.*");
  reload?.();
  expect(await refused.promise).toContain("cannot reload the configuration");
  expect([await water(), server.connections]).toEqual([200, 1]);
  stop.resolve();
  expect(await ended).toBe(0);
});
