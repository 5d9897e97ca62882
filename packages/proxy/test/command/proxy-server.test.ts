import { create } from "@bufbuild/protobuf";
import { FieldDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { respondWatered, watered } from "../../../testing/src/gateway/greenhouse-client.ts";
import { grpcResponse, startScriptedServer } from "../../../testing/src/gateway/scripted-http2-server.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { proxyCommand } from "../../src/command/program.ts";

/** A proxy command in this process. Dispose of it with `await using`, which stops it and waits for its end. */
interface RunningCommand extends AsyncDisposable {
  readonly baseUrl: string;
  /** The lines on standard output and standard error. */
  readonly printed: readonly string[];
  /** Reads configuration and descriptors again, as SIGHUP does. */
  readonly reload: () => void;
  /** Waters a bed, and returns the HTTP status. */
  readonly water: () => Promise<number>;
}

async function startCommand(...args: readonly string[]): Promise<RunningCommand> {
  const printed: string[] = [];
  const serving = Promise.withResolvers<string>();
  const stop = Promise.withResolvers<void>();
  let reload: (() => void) | undefined;
  const ended = proxyCommand(args, {
    out: (text) => {
      printed.push(text);
      serving.resolve(text);
    },
    err: (text) => void printed.push(text),
    stopRequested: () => stop.promise,
    onHangup: (onReload) => {
      reload = onReload;
    },
  });
  const [baseUrl = ""] = (await serving.promise).split(" ");
  return {
    baseUrl,
    printed,
    reload: () => reload?.(),
    water: async () => (await fetch(`${baseUrl}/beds/7:water`, { method: "POST" })).status,
    [Symbol.asyncDispose]: async () => {
      stop.resolve();
      expect(await ended).toBe(0);
    },
  };
}

/** Returns settings for one upstream in a file. */
function settingsOf(address: string, descriptors: string, services: string, drainMs: number): string {
  const upstreams = [{ addresses: [address], descriptors, services: [services] }];
  return JSON.stringify({ listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: drainMs }, upstreams });
}

const greenhouse = descriptorSetOf(GreenhouseService.file);

test("a reload with a refused configuration keeps the upstream connections open", async () => {
  await using server = await startScriptedServer(respondWatered);
  using folder = createTempFolder();
  const descriptors = folder.write("greenhouse.binpb", greenhouse);
  const configure = (services: string): string =>
    folder.write("proxy.yaml", settingsOf(server.baseUrl, descriptors, services, 0));
  await using command = await startCommand("--config", configure("greenhouse.*"));
  expect(await command.water()).toBe(200);
  configure("other.*");
  command.reload();
  await expect.poll(() => command.printed).toContainEqual(expect.stringContaining("cannot reload the configuration"));
  expect([await command.water(), server.connections]).toEqual([200, 1]);
});

test("a call in flight finishes after a reload replaces its upstream", async () => {
  const received = Promise.withResolvers<() => void>();
  await using old = await startScriptedServer({
    request: (connection, id) => received.resolve(() => connection.send(...grpcResponse(id, watered))),
  });
  await using next = await startScriptedServer(respondWatered);
  using folder = createTempFolder();
  const descriptors = folder.write("greenhouse.binpb", greenhouse);
  const configure = (address: string, drainMs: number): string =>
    folder.write("proxy.yaml", settingsOf(address, descriptors, "greenhouse.*", drainMs));
  await using command = await startCommand("--config", configure(old.baseUrl, 10_000));
  const call = command.water();
  const respond = await received.promise;
  configure(next.baseUrl, 0);
  command.reload();
  await expect.poll(() => command.printed).toContain("configuration reloaded");
  expect(await command.water()).toBe(200);
  respond();
  expect([await call, next.requests]).toEqual([200, 1]);
});

test("reloaded descriptors with a new field renew the OpenAPI document", async () => {
  await using server = await startScriptedServer(respondWatered);
  using folder = createTempFolder();
  const descriptors = folder.write("greenhouse.binpb", greenhouse);
  const drain = ["--drain-delay-ms", "0", "--drain-timeout-ms", "0"];
  const upstream = ["--upstream", server.baseUrl, "--descriptors", descriptors];
  await using command = await startCommand("--port", "0", ...drain, ...upstream);
  const readDocument = async (): Promise<string> => await (await fetch(`${command.baseUrl}/openapi.json`)).text();
  expect(await readDocument()).not.toContain('"unit"');
  const proto = structuredClone(GreenhouseService.file.proto);
  const field = { name: "unit", jsonName: "unit", number: 9, label: 1, type: 9 };
  proto.messageType[0]?.field.push(create(FieldDescriptorProtoSchema, field));
  folder.write("greenhouse.binpb", descriptorSetOf({ ...GreenhouseService.file, proto }));
  command.reload();
  await expect.poll(() => command.printed).toContain("descriptors reloaded");
  expect(await readDocument()).toContain('"unit"');
});
