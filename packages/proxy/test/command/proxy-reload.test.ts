import { renameSync, writeFileSync } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createReflectionService, ServerReflection } from "../../../gateway/src/reflection/index.ts";
import { StreamService } from "../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { startProxyProcess } from "../../../testing/src/gateway/proxy-process.ts";
import { createTestGateway } from "../../../testing/src/gateway/test-engine.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { readSamples } from "../../../testing/src/telemetry/samples.ts";

// The command `proxy` while its descriptors are replaced by others that cannot be used.

const folder = createTempFolder();
const file = folder.file("set.binpb");
const descriptors = descriptorSetOf(GreenhouseService.file);

/** What the reflection of the upstream lists. */
let offered: readonly DescService[] = [];
const upstream = createTestGateway({
  routes: (router) => {
    router.service(GreenhouseService, { getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }) });
    router.service(ServerReflection, {
      serverReflectionInfo: (requests, context) =>
        createReflectionService(offered).serverReflectionInfo(requests, context),
    });
  },
});
/** Another upstream, whose reflection does not change. */
const neighbor = createTestGateway({
  routes: (router) => {
    router.service(ServerReflection, createReflectionService([StreamService]));
  },
});
let address = "";
let neighborAddress = "";

beforeAll(async () => {
  const ports = await Promise.all([upstream, neighbor].map((each) => each.listen({ host: "127.0.0.1" })));
  [address = "", neighborAddress = ""] = ports.map(({ port }) => `http://127.0.0.1:${port}`);
});
afterAll(async () => {
  await Promise.all([upstream.close(), neighbor.close()]);
  folder[Symbol.dispose]();
});

function offer(...services: readonly DescService[]): void {
  offered = services;
}

test.each<{ name: string; source: () => readonly string[]; spoil: () => void; mend: () => void; says: RegExp }>([
  {
    name: "of a file that is none",
    source: () => ["--descriptors", file],
    spoil: () => writeFileSync(file, "no descriptors"),
    mend: () => writeFileSync(file, descriptors),
    says: /they are no binary google\.protobuf\.FileDescriptorSet; the previous ones of these upstreams stay in use$/,
  },
  {
    name: "of a file that is missing",
    source: () => ["--descriptors", file],
    spoil: () => renameSync(file, `${file}.away`),
    mend: () => renameSync(`${file}.away`, file),
    says: /ENOENT: no such file or directory/,
  },
  {
    name: "of reflection",
    source: () => ["--reflection"],
    spoil: () => offer(ServerReflection),
    mend: () => offer(GreenhouseService, ServerReflection),
    says: /no service that is passed on; the previous ones of these upstreams stay in use$/,
  },
  {
    name: "of one of several upstreams",
    source: () => ["--reflection", "--upstream", neighborAddress, "--require-all"],
    spoil: () => offer(ServerReflection),
    mend: () => offer(GreenhouseService, ServerReflection),
    says: /no service that is passed on; the previous ones of these upstreams stay in use$/,
  },
])("descriptors $name leave the old ones in use, set the metric, and are written once", async (row) => {
  writeFileSync(file, descriptors);
  offer(GreenhouseService, ServerReflection);
  const words = ["--port", "0", "--drain-delay-ms", "0", "--upstream", address];
  await using proxy = await startProxyProcess([...words, ...row.source()]);
  const { command, baseUrl, adminUrl } = proxy;
  const metric = async (name: string): Promise<number> => {
    const samples = readSamples(await (await fetch(`${adminUrl}/metrics`)).text());
    const ofReload = samples.filter((each) => each.name === `gateway_descriptors_reload_${name}`);
    return ofReload.find(({ labels }) => labels["upstream"] === address)?.value ?? Number.NaN;
  };
  expect(await metric("successful")).toBe(1);
  const startedAtS = await metric("last_success_seconds");
  expect(Math.abs(Date.now() / 1_000 - startedAtS)).toBeLessThan(600);

  row.spoil();
  command.process.kill("SIGHUP");
  await expect.poll(() => metric("successful")).toBe(0);
  const refusedAtS = await metric("last_success_seconds");
  for (let reload = 0; reload < 3; reload++) {
    command.process.kill("SIGHUP");
    // Served by the old descriptors, and after the signal.
    const response = await fetch(`${baseUrl}/sensors/a/reading`);
    expect(await response.json()).toEqual({ sensor: "a", degreesCelsius: 21 });
  }
  expect((await fetch(`${adminUrl}/readyz`)).status).toBe(200);
  expect(await metric("successful")).toBe(0);
  expect(await metric("last_success_seconds")).toBe(refusedAtS);

  row.mend();
  command.process.kill("SIGHUP");
  await expect.poll(() => metric("successful")).toBe(1);
  expect(await metric("last_success_seconds")).toBeGreaterThan(startedAtS);
  await expect.poll(command.stdout).toMatch(/\ndescriptors are readable again and unchanged\n$/);
  // Reloads run one after another, so those that were refused are done.
  command.process.kill("SIGTERM");
  expect(await command.end()).toBe(0);
  const written = command.stderr().split("\n").slice(0, -1);
  expect(written).toEqual([expect.stringMatching(/^descriptors could not be reloaded: /)]);
  expect(written[0]).toMatch(row.says);
});

test("an upstream that cannot be reached does not keep the changes of another one from being reported", async () => {
  offer(GreenhouseService, ServerReflection);
  const upstreams = ["--upstream", "http://127.0.0.1:1", "--upstream", address, "--reflection"];
  await using proxy = await startProxyProcess(["--port", "0", ...upstreams]);
  const { command } = proxy;
  offer(GreenhouseService, StreamService, ServerReflection);
  command.process.kill("SIGHUP");
  await command.find(/^reloaded the descriptors\n {2}\+ \/streams\.v1\.StreamService\//m);
  await command.find(
    /^descriptors could not be reloaded: 127\.0\.0\.1:1: .*; the previous ones of these upstreams stay in use$/m,
  );
  expect(command.stdout()).not.toContain("unchanged");
});
